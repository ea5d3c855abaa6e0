#pragma once

// Keeps a flood of bad connections from filling a disk with log lines.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/clock.h"

namespace dtf::net {

// At most kLinesPerSecond lines of each of `kKinds` kinds. Thread-compatible.
template <size_t kKinds, uint32_t kLinesPerSecond = 5>
class LogLimiter {
 public:
  // Returns the number of suppressed lines of this kind since the last one if a line may be written
  // now, else nullopt.
  std::optional<uint64_t> allow(size_t kind, TimePoint now) {
    Kind& state = kinds_[kind];
    if (now - state.second_start >= std::chrono::seconds(1)) {
      state.second_start = now;
      state.lines = 0;
    }
    if (state.lines >= kLinesPerSecond) {
      ++state.suppressed;
      return std::nullopt;
    }
    ++state.lines;
    const uint64_t suppressed = state.suppressed;
    state.suppressed = 0;
    return suppressed;
  }

 private:
  struct Kind {
    TimePoint second_start{};
    uint32_t lines = 0;
    uint64_t suppressed = 0;
  };
  std::array<Kind, kKinds> kinds_{};
};

}  // namespace dtf::net
