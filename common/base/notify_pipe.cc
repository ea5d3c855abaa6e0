#include "common/base/notify_pipe.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "common/base/check.h"

namespace dtf {

NotifyPipe::NotifyPipe(int fd, Duration patience) : fd_(fd), patience_(patience) {
  DTF_CHECK(fd_ >= 0 && patience_ >= Duration{0});
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

bool NotifyPipe::write(const std::string& line) {
  DTF_CHECK(line.ends_with('\n'));  // else the next line would join it
  const TimePoint deadline = clock_.now() + patience_;
  MutexLock lock(mutex_);
  return writeBy(line, deadline);
}

// The kernel writes up to PIPE_BUF bytes completely or not at all.
bool NotifyPipe::writeIfRoom(const std::string& line) {
  DTF_CHECK(line.ends_with('\n'));
  // held: another line waits for room
  if (line.size() > PIPE_BUF || !mutex_.tryLock()) return false;
  const bool written = !cut_ && halfIsFree(line.size()) &&
                       ::write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  mutex_.unlock();
  return written;
}

// First completes a line that a deadline cut off, so that it makes one bad line and the new line is
// whole.
bool NotifyPipe::writeBy(const std::string& line, TimePoint deadline) {
  const std::string text = cut_ ? "\n" + line : line;
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = ::write(fd_, text.data() + at, text.size() - at);
    if (n > 0) at += static_cast<size_t>(n);
    const bool full = n < 0 && errno == EAGAIN;
    if ((n < 0 && !full && errno != EINTR) || (full && !awaitRoom(deadline))) break;
  }
  DTF_CHECK(at <= text.size());
  if (at > 0) cut_ = text[at - 1] != '\n';
  return at == text.size();
}

bool NotifyPipe::awaitRoom(TimePoint deadline) const {
  const Duration left = deadline - clock_.now();
  if (left <= Duration{0}) return false;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  pollfd waiting{fd_, POLLOUT, 0};
  const int ready = ::poll(&waiting, 1, static_cast<int>(ms));
  return ready > 0 || (ready < 0 && errno == EINTR);
}

bool NotifyPipe::halfIsFree(size_t bytes) const {
  int held = 0;
  const int capacity = ::fcntl(fd_, F_GETPIPE_SZ);
  if (capacity <= 0 || ::ioctl(fd_, FIONREAD, &held) != 0) return true;  // a file, in a test
  return static_cast<size_t>(held) + bytes <= static_cast<size_t>(capacity) / 2;
}

}  // namespace dtf
