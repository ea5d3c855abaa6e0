#include "launcher/output_queue.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/check.h"

namespace dtf::launcher {

namespace {
// poll() promises that this much can be written to a pipe without waiting (PIPE_BUF).
constexpr size_t kWriteBytes = 4096;
}  // namespace

bool OutputQueue::push(std::string_view text) {
  if (broken_ || text_.size() + text.size() > kBytesMax) return false;
  text_.append(text);
  DTF_CHECK(text_.size() <= kBytesMax);
  return true;
}

bool OutputQueue::pump() {
  size_t written = 0;
  while (!broken_ && written < text_.size()) {
    pollfd state{fd_, POLLOUT, 0};
    if (::poll(&state, 1, 0) <= 0) break;
    const ssize_t n =
        ::write(fd_, text_.data() + written, std::min(kWriteBytes, text_.size() - written));
    if (n >= 0)
      written += static_cast<size_t>(n);
    else if (errno == EAGAIN)
      break;
    else if (errno != EINTR)
      broken_ = true;
  }
  DTF_CHECK(written <= text_.size());
  if (broken_)
    text_.clear();
  else
    text_.erase(0, written);
  return text_.empty();
}

bool OutputQueue::finish(Duration patience) {
  DTF_CHECK(patience >= Duration{0});  // poll() would wait for ever
  const auto patience_ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  while (!pump()) {
    pollfd state{fd_, POLLOUT, 0};
    const int ready = ::poll(&state, 1, static_cast<int>(patience_ms));
    if (ready == 0 || (ready < 0 && errno != EINTR)) return false;
  }
  return !broken_;
}

}  // namespace dtf::launcher
