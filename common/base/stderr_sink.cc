#include "common/base/stderr_sink.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dtf {

namespace {

bool hasRoom(int fd, std::chrono::milliseconds patience) {
  pollfd waiting{fd, POLLOUT, 0};
  return ::poll(&waiting, 1, static_cast<int>(patience.count())) > 0;
}

}  // namespace

bool StderrSink::write(std::string_view text) {
  DTF_CHECK_MSG(text.ends_with('\n'), std::string(text));
  adoptStderr();
  // First completes a line that was cut off, so that it makes one bad line and the new line is
  // whole.
  if ((!cut_ || send("\n")) && send(printableLines(text))) return true;
  dropped_ += static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
  return false;
}

void StderrSink::awaitRoom(Duration patience) {
  DTF_CHECK(patience >= Duration{0});
  hasRoom(STDERR_FILENO, std::chrono::ceil<std::chrono::milliseconds>(patience));
}

// Opens a pipe or terminal a second time through /proc. A file is not reopened: the new description
// would have its own offset, and overwrite the content.
void StderrSink::adoptStderr() {
  struct stat info {};
  if (::fstat(STDERR_FILENO, &info) != 0) return own_.reset();
  if (own_.valid() && info.st_dev == device_ && info.st_ino == inode_) return;
  own_.reset();
  device_ = info.st_dev;
  inode_ = info.st_ino;
  if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))
    own_ = Fd(::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

// Writes pieces that the kernel takes whole or not at all. Polls before each: if descriptor 2 could
// not be reopened, a write without room would block.
bool StderrSink::send(std::string_view text) {
  const int fd = own_.valid() ? own_.get() : STDERR_FILENO;
  while (!text.empty()) {
    if (!hasRoom(fd, std::chrono::milliseconds(0))) return false;
    const ssize_t n = ::write(fd, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    cut_ = text[static_cast<size_t>(n) - 1] != '\n';
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace dtf
