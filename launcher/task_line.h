#pragma once

// A line of a task's output as a person at the console needs it. The log files keep every line as
// it was written.

#include <cstdint>
#include <string>
#include <string_view>

namespace dtf::launcher {

//   kind       what it is                                          on the console
//   detail     a line of common/base/log.h, debug or info          with -v
//   progress   event=progress: dtf-launch shows the progress       never
//   failed     event=failed: dtf-launch reports why the job ends   with -v
//   alarm      warning or error, or no line of common/base/log.h   always
//   more       an indented line: belongs to the one before         as the one before
enum class LineKind : uint8_t { kDetail, kProgress, kFailed, kAlarm, kMore };

struct TaskLine {
  LineKind kind = LineKind::kAlarm;
  std::string text;  // without date, zone and task, which the console's prefix names
};

// `line` has been through printable() (common/base/text.h).
TaskLine readTaskLine(std::string_view line);

}  // namespace dtf::launcher
