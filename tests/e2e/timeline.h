#pragma once

// The times of spans in a task's timeline.

#include <string>
#include <vector>

#include "common/base/json.h"

namespace dtf::testing {

struct Span {
  double begin = 0, end = 0;  // microseconds
};

// Spans with that name, in the file of `timeline_step`.
inline std::vector<Span> spansOf(const Json& timeline, const std::string& name) {
  std::vector<Span> spans;
  for (const Json& event : timeline["traceEvents"])
    if (event.stringOr("ph", "") == "X" && event["name"] == name)
      spans.push_back({event.doubleAt("ts"), event.doubleAt("ts") + event.doubleAt("dur")});
  return spans;
}

}  // namespace dtf::testing
