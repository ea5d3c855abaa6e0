#include "launcher/task_line.h"

#include <algorithm>
#include <array>

#include "common/base/log.h"

namespace dtf::launcher {

namespace {

// Of "2026-03-01T10:11:12.345+01:00": digits stand for digits, s for a sign.
constexpr std::string_view kTimePattern = "0000-00-00T00:00:00.000s00:00";
constexpr size_t kClockBegin = 11, kClockEnd = 23;  // "10:11:12.345"

bool startsWithTime(std::string_view line) {
  if (line.size() <= kTimePattern.size() || line[kTimePattern.size()] != ' ') return false;
  for (size_t i = 0; i < kTimePattern.size(); ++i) {
    const char want = kTimePattern[i], got = line[i];
    const bool fits = want == '0'   ? got >= '0' && got <= '9'
                      : want == 's' ? got == '+' || got == '-'
                                    : got == want;
    if (!fits) return false;
  }
  return true;
}

// Cuts the first word off `rest`.
std::string_view takeWord(std::string_view& rest) {
  const size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

}  // namespace

TaskLine readTaskLine(std::string_view line) {
  if (line.starts_with(' ') || line.starts_with('\t')) return {LineKind::kMore, std::string(line)};
  if (!startsWithTime(line)) return {LineKind::kAlarm, std::string(line)};
  std::string_view rest = line.substr(kTimePattern.size() + 1);
  const std::string_view word = takeWord(rest);
  log::Level level{};
  if (!log::parseLevel(word, level)) return {LineKind::kAlarm, std::string(line)};
  if (rest.starts_with("task=")) takeWord(rest);
  TaskLine result;
  result.kind = rest.starts_with("event=failed ")     ? LineKind::kFailed
                : level >= log::Level::kWarning       ? LineKind::kAlarm
                : rest.starts_with("event=progress ") ? LineKind::kProgress
                                                      : LineKind::kDetail;
  result.text = line.substr(kClockBegin, kClockEnd - kClockBegin);
  result.text.append(" ").append(word).append(" ").append(rest);
  return result;
}

}  // namespace dtf::launcher
