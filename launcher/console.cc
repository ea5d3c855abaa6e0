#include "launcher/console.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace dtf::launcher {

namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";
// poll() promises that this much can be written to a pipe without waiting (PIPE_BUF).
constexpr size_t kWriteBytes = 4096;

}  // namespace

bool parseColorMode(std::string_view text, ColorMode& mode) {
  if (text == "auto")
    mode = ColorMode::kAuto;
  else if (text == "always")
    mode = ColorMode::kAlways;
  else if (text == "never")
    mode = ColorMode::kNever;
  else
    return false;
  return true;
}

bool useColor(ColorMode mode, int fd) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  return ::isatty(fd) == 1 && (no_color == nullptr || *no_color == '\0') && !dumb;
}

std::string printable(std::string_view line) {
  std::string text(line);
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f) c = '?';
  }
  return text;
}

void Console::line(std::string_view text) {
  if (broken_) return;
  if (backlog_.size() + text.size() > kBacklogBytesMax) {
    ++dropped_lines_;
    return;
  }
  if (dropped_lines_ > 0) {
    backlog_.append(
        "(" + std::to_string(dropped_lines_) +
        " lines are not shown: the terminal did not take them; the log files have them all)\n");
    dropped_lines_ = 0;
  }
  if (!status_.empty()) backlog_.append(kEraseLine);
  backlog_.append(text);
  backlog_.append("\n");
  if (!status_.empty()) backlog_.append(status_);
  pump();
}

void Console::status(std::string_view text) {
  if (!is_terminal_ || text == status_) return;
  status_ = text;
  if (backlog_.size() + status_.size() > kBacklogBytesMax) return;
  backlog_.append(kEraseLine);
  backlog_.append(status_);
  pump();
}

size_t Console::columns() const {
  winsize size{};
  if (::ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

bool Console::pump() {
  size_t written = 0;
  while (!broken_ && written < backlog_.size()) {
    pollfd state{fd_, POLLOUT, 0};
    if (::poll(&state, 1, 0) <= 0) break;
    const ssize_t n =
        ::write(fd_, backlog_.data() + written, std::min(kWriteBytes, backlog_.size() - written));
    if (n >= 0)
      written += static_cast<size_t>(n);
    else if (errno == EAGAIN)
      break;
    else if (errno != EINTR)
      broken_ = true;
  }
  if (broken_)
    backlog_.clear();
  else
    backlog_.erase(0, written);
  return backlog_.empty();
}

void Console::finish() {
  status("");
  if (dropped_lines_ > 0) line("");
  while (!pump()) {
    pollfd state{fd_, POLLOUT, 0};
    if (::poll(&state, 1, 1000) <= 0) return;
  }
}

}  // namespace dtf::launcher
