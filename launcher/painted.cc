#include "launcher/painted.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::launcher {

namespace {

constexpr struct {
  std::string_view word, color;
} kSeverities[] = {{"error", "\x1b[1;31m"}, {"warning", "\x1b[1;33m"}};
constexpr std::string_view kNoColor = "\x1b[0m";
constexpr size_t kTimeWidth = 13;  // "10:11:12.345 " of a task's log line

bool isSeverity(std::string_view line, size_t at, std::string_view word) {
  DTF_CHECK(at + word.size() <= line.size());
  const std::string_view before = line.substr(0, at), behind = line.substr(at + word.size());
  const bool follows_clock =
      at == kTimeWidth && before[2] == ':' && before[5] == ':' && before[8] == '.';
  return ((at == 0 || before.ends_with(": ")) && behind.starts_with(": ")) ||
         (follows_clock && behind.starts_with(" "));
}

void paintLine(std::string_view line, std::string& to) {
  size_t at = line.npos;
  std::string_view word, color;
  for (const auto& severity : kSeverities) {
    size_t found = line.find(severity.word);
    while (found != line.npos && !isSeverity(line, found, severity.word))
      found = line.find(severity.word, found + 1);
    if (found >= at) continue;
    at = found;
    word = severity.word;
    color = severity.color;
  }
  to.append(line.substr(0, at));
  if (at == line.npos) return;
  to.append(color).append(word).append(kNoColor).append(line.substr(at + word.size()));
}

}  // namespace

std::string painted(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    paintLine(lines.substr(0, end), text);
    if (end < lines.size()) text += '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

}  // namespace dtf::launcher
