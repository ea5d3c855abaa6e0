#pragma once

// Reports that a worker still reads its data, or learns from them: a launcher doesn't end a task
// that makes progress because it isn't ready.

#include <cstdint>
#include <functional>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/thread.h"

namespace dtf::workerd {

// Returns the time that all threads of this process have computed.
Duration processTime();

// Calls a function about every `every`, from a thread of its own, while bytes are read or the
// process computes for most of the time. A reading that stands still, as on a lost disk, isn't
// reported: so it still meets the deadline of the start.
// Owns: its thread, which the destructor ends. Borrows: the functions' own references.
// Threads: construct and destroy it on one thread.
// Blocks: the destructor, for a call of `on_progress`.
class ReadingWatch {
 public:
  // `bytes_read`, `computed`: totals of the process; thread-safe. `on_progress` gets the bytes
  // since the construction.
  ReadingWatch(std::function<uint64_t()> bytes_read, std::function<Duration()> computed,
               Duration every, std::function<void(uint64_t bytes)> on_progress);
  ~ReadingWatch();
  ReadingWatch(const ReadingWatch&) = delete;
  ReadingWatch& operator=(const ReadingWatch&) = delete;

 private:
  void run();
  bool waits();

  const std::function<uint64_t()> bytes_read_;
  const std::function<Duration()> computed_;
  const Duration every_;
  const std::function<void(uint64_t)> on_progress_;
  const uint64_t bytes_before_;
  Mutex mutex_;
  CondVar ends_;
  bool is_over_ DTF_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the other members
};

}  // namespace dtf::workerd
