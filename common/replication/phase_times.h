#pragma once

// The phases of a worker's step, and the worker whose step is the longest.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/clock.h"

namespace dtf::replication {

// The phases that fill the time from one step's answer to the next one's.
enum class Phase : uint8_t {
  kData,      // a batch is read, or awaited from the thread that reads ahead
  kCompute,   // the step is computed; also all that no other phase has, such as summaries
  kSend,      // gradients and parameters travel
  kWait,      // for the other workers, and for the update of the parameters
  kEvaluate,  // the chief evaluates
};
inline constexpr std::array<std::string_view, 5> kPhaseNames = {"data", "compute", "send", "wait",
                                                                "evaluate"};
// The phases of a worker's own time: they make the others wait.
inline constexpr std::array kOwnPhases = {Phase::kData, Phase::kCompute, Phase::kSend};

constexpr std::string_view phaseName(Phase phase) {
  return kPhaseNames[static_cast<size_t>(phase)];
}

// The time spent in each phase. Value type.
struct PhaseTimes {
  std::array<Duration, kPhaseNames.size()> each{};

  Duration& operator[](Phase phase) { return each[static_cast<size_t>(phase)]; }
  Duration operator[](Phase phase) const { return each[static_cast<size_t>(phase)]; }
  // Returns the step without waiting and evaluating. An evaluation is the job's work, which only
  // the chief does: it makes no worker slow.
  Duration own() const {
    Duration sum{0};
    for (const Phase phase : kOwnPhases) sum += (*this)[phase];
    return sum;
  }
  PhaseTimes& operator+=(const PhaseTimes& other) {
    for (size_t i = 0; i < each.size(); ++i) each[i] += other.each[i];
    return *this;
  }
  PhaseTimes operator-(const PhaseTimes& other) const {
    PhaseTimes difference;
    for (size_t i = 0; i < each.size(); ++i) difference.each[i] = each[i] - other.each[i];
    return difference;
  }
  bool operator==(const PhaseTimes&) const = default;
};

// The worker that the others wait for, see StragglerFinder.
struct Straggler {
  uint32_t rank = 0;
  Phase phase = Phase::kCompute;  // the phase with most of the excess
  Duration excess{0};             // of its own time in a step over the others'
  bool operator==(const Straggler&) const = default;
};

}  // namespace dtf::replication
