#pragma once

// The writing end of the pipe to the launcher: lines arrive whole or not at all, however slowly the
// launcher reads.

#include <chrono>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace dtf {

// How long a line waits for a launcher that doesn't read (it is suspended, or the host is busy).
inline constexpr Duration kNotifyPatience = std::chrono::seconds(10);

// Borrows: `fd`, which becomes non-blocking.
// Threads: thread-safe.
// Blocks: write() for `patience` at most, writeIfRoom() never.
// Errors: none; false: not written.
class NotifyPipe {
 public:
  explicit NotifyPipe(int fd, Duration patience = kNotifyPatience);

  // A line that must arrive. `line` ends with its "\n".
  bool write(const std::string& line) DTF_EXCLUDES(mutex_);

  // A line that the next one of its kind replaces. It uses half of the pipe at most: so however
  // long nobody reads, there is room for the few lines that must arrive.
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
