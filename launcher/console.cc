#include "launcher/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/check.h"
#include "common/base/text.h"
#include "launcher/painted.h"

namespace dtf::launcher {

namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";
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
  return canRedraw(fd) && (no_color == nullptr || *no_color == '\0');
}

bool canRedraw(int fd) {
  const char* term = std::getenv("TERM");
  const bool capable = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  return capable && ::isatty(fd) == 1;
}

void Console::line(std::string_view text, std::string_view prefix) {
  DTF_CHECK_MSG(prefix.find('\n') == prefix.npos, std::string(prefix));
  std::string block;
  if (dropped_lines_ > 0)
    block = "(" + std::to_string(dropped_lines_) +
            " lines are not shown: the terminal was too slow; the log files have all lines)\n";
  const std::string lines = printableLines(text);
  block.append(prefix).append(paints_ ? painted(lines) : lines).append("\n");
  if (!status_.empty()) block = std::string(kEraseLine) + block + status_;
  dropped_lines_ = queue_.push(block) ? 0 : dropped_lines_ + 1;
  queue_.pump();
}

void Console::status(std::string_view text) {
  DTF_CHECK_MSG(text.find('\n') == text.npos, std::string(text));  // it could not be erased
  if (!is_terminal_ || text == status_) return;
  status_ = text;
  queue_.push(std::string(kEraseLine) + status_);
  queue_.pump();
}

size_t Console::columns() const {
  winsize size{};
  if (::ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void Console::finish() {
  status("");
  queue_.finish(std::chrono::seconds(1));
}

}  // namespace dtf::launcher
