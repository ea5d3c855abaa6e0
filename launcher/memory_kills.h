#pragma once

// Who was killed for lack of memory can't say so: the kernel counts it.

#include <chrono>
#include <cstdint>
#include <filesystem>

#include "common/base/clock.h"
#include "launcher/exit_status.h"

namespace dtf::launcher {

// Tells of a SIGKILL that nobody here has sent whether it was the kernel's. Another process of the
// host that the kernel killed in the same seconds may be taken for the one that has ended.
// Borrows: `clock`.
// Threads: thread-compatible.
class MemoryKills {
 public:
  // From the kill to the end of a process that must give back its memory first.
  static constexpr Duration kEndWithin = std::chrono::seconds(10);

  // `vmstat`: a file as /proc/vmstat; where it doesn't count, nothing is ever said.
  explicit MemoryKills(const Clock& clock, std::filesystem::path vmstat = "/proc/vmstat");

  // Often, so that a kill is known with its time.
  void look();
  // Of a process that has just ended, by no signal of ours.
  ExitStatus explained(ExitStatus status);

 private:
  uint64_t count() const;

  const Clock& clock_;
  const std::filesystem::path vmstat_;
  uint64_t seen_;
  uint64_t unexplained_ = 0;  // kills whose process has not ended yet
  TimePoint risen_{};         // the last time that the count had risen
};

}  // namespace dtf::launcher
