#include "launcher/log_merge.h"

#include <cstdio>
#include <ctime>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

std::optional<int64_t> timeOfLine(std::string_view line) {
  if (line.size() < kTimeBytes) return std::nullopt;
  std::tm utc{};
  int ms = 0, hours = 0, minutes = 0;
  char sign = 0;
  const std::string text(line.substr(0, kTimeBytes));
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3d%c%2d:%2d", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &ms, &sign, &hours,
                  &minutes) != 10 ||
      (sign != '+' && sign != '-'))
    return std::nullopt;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  const int64_t east = (hours * 60 + minutes) * 60 * (sign == '-' ? -1 : 1);
  return (static_cast<int64_t>(::timegm(&utc)) - east) * 1000 + ms;
}

void LogMerge::add(const std::filesystem::path& file) {
  Source source;
  // A device or a pipe may have no end.
  std::error_code unknown;
  if (std::filesystem::is_regular_file(file, unknown)) source.stream.open(file, std::ios::binary);
  if (!source.stream.is_open()) throw Error(ErrorCode::kBadData, "cannot read " + file.string());
  sources_.push_back(std::move(source));
}

void LogMerge::read(bool to_the_end, int64_t until,
                    const std::function<void(const LogLine&)>& on_line) {
  DTF_CHECK(on_line);
  for (Source& source : sources_) fill(source, to_the_end);
  for (;;) {
    size_t first = sources_.size();
    for (size_t i = 0; i < sources_.size(); ++i)
      if (sources_[i].next && (first == sources_.size() || sources_[i].time < sources_[first].time))
        first = i;
    if (first == sources_.size() || (!to_the_end && sources_[first].time >= until)) return;
    DTF_CHECK(sources_[first].next.has_value());
    on_line({first, std::move(*sources_[first].next)});
    sources_[first].next.reset();
    fill(sources_[first], to_the_end);
  }
}

// Adds to `partial` up to the line's end, or to the longest that is shown as one line. False: the
// file ends before.
bool LogMerge::readLine(Source& source) {
  char piece[4096];
  while (source.partial.size() < kLineBytesMax) {
    source.stream.getline(piece, sizeof piece);
    const auto count = static_cast<size_t>(source.stream.gcount());
    if (source.stream.eof()) {
      source.partial.append(piece, count);
      return false;
    }
    if (!source.stream.fail()) {
      source.partial.append(piece, count - 1);
      return true;
    }
    source.partial.append(piece, count);
    if (source.stream.bad()) return false;  // the disk gives no more, and may later
    source.stream.clear();
  }
  return true;
}

void LogMerge::fill(Source& source, bool to_the_end) {
  if (source.next) return;
  source.stream.clear();  // the end of the file, seen earlier, may have moved
  const bool whole = readLine(source);
  if (!whole && (!to_the_end || source.partial.empty())) return;
  source.next = std::exchange(source.partial, {});
  if (const std::optional<int64_t> time = timeOfLine(*source.next)) source.time = *time;
}

}  // namespace dtf::launcher
