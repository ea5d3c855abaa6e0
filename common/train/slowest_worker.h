#pragma once

// The worker that has made a sync job longest.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/replication/phase_times.h"

namespace dtf::train {

// Its part in the length of a job. Value type.
struct Slowest {
  uint32_t rank = 0;
  replication::Phase phase = replication::Phase::kCompute;  // with most of the time
  uint64_t steps = 0;                                       // in which ps/0 named it
  double seconds = 0;  // by which these steps were longer than the others needed
};

// Adds up the workers that ps/0 names.
// Threads: thread-compatible.
// Blocks: never. Allocates only in its constructor.
class SlowestWorker {
 public:
  explicit SlowestWorker(uint32_t workers) : workers_(workers) {}

  // Notes the worker that an answer names, after each step.
  void note(const std::optional<replication::Straggler>& named);
  // Returns the worker with the most time; nullopt: none was named.
  std::optional<Slowest> most() const;

 private:
  struct Worker {
    uint64_t steps = 0;
    std::array<Duration, replication::kPhaseNames.size()> excess{};  // by phase
  };
  std::vector<Worker> workers_;
};

}  // namespace dtf::train
