#include "daemons/workerd/reading_watch.h"

#include <ctime>
#include <utility>

#include "common/base/check.h"

namespace dtf::workerd {

Duration processTime() {
  timespec spent{};
  DTF_CHECK(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) == 0);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

ReadingWatch::ReadingWatch(std::function<uint64_t()> bytes_read, std::function<Duration()> computed,
                           Duration every, std::function<void(uint64_t bytes)> on_progress)
    : bytes_read_(std::move(bytes_read)),
      computed_(std::move(computed)),
      every_(every),
      on_progress_(std::move(on_progress)),
      bytes_before_(bytes_read_()),
      thread_("reading", [this] { run(); }) {
  DTF_CHECK(every > Duration{0} && on_progress_ != nullptr);
}

ReadingWatch::~ReadingWatch() {
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  ends_.notifyAll();
}

// Returns false at the end.
bool ReadingWatch::waits() {
  const auto deadline = std::chrono::steady_clock::now() + every_;
  const MutexLock lock(mutex_);
  while (!is_over_)
    if (!ends_.waitUntil(mutex_, deadline)) break;
  return !is_over_;
}

void ReadingWatch::run() {
  uint64_t bytes = bytes_before_;
  Duration computed = computed_();
  while (waits()) {
    const uint64_t bytes_now = bytes_read_();
    const Duration computed_now = computed_();
    if (bytes_now != bytes || 2 * (computed_now - computed) > every_)
      on_progress_(bytes_now - bytes_before_);
    bytes = bytes_now;
    computed = computed_now;
  }
}

}  // namespace dtf::workerd
