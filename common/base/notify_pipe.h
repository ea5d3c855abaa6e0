#pragma once

// The writing end of the pipe to the launcher. Lines arrive whole or not at all, however slowly the
// launcher reads.

#include <chrono>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace dtf {

// The wait for a launcher that does not read because it is suspended or the host is busy.
inline constexpr Duration kNotifyPatience = std::chrono::seconds(10);

// Borrows: `fd`, which becomes non-blocking.
// Threads: thread-safe.
// Blocks: write() for `patience` at most, writeIfRoom() never.
// Errors: none; the functions return false if the line was not written.
class NotifyPipe {
 public:
  explicit NotifyPipe(int fd, Duration patience = kNotifyPatience);

  // Writes a line that must arrive. `line` ends with "\n".
  bool write(const std::string& line) DTF_EXCLUDES(mutex_);

  // Writes a line that the next one of its kind replaces. It fills the pipe half at most, so that
  // the few lines that must arrive find room even if the launcher does not read for long.
  bool writeIfRoom(const std::string& line) DTF_EXCLUDES(mutex_);

 private:
  bool writeBy(const std::string& text, TimePoint deadline) DTF_REQUIRES(mutex_);
  bool awaitRoom(TimePoint deadline) const;
  bool halfIsFree(size_t bytes) const;

  const int fd_;
  const Duration patience_;
  const SystemClock clock_;
  Mutex mutex_;
  bool cut_ DTF_GUARDED_BY(mutex_) = false;  // the pipe ends with a piece of a line
};

}  // namespace dtf
