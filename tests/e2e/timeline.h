#pragma once

// What a task's timeline says of when things were done.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dtf::testing {

struct Span {
  double begin = 0, end = 0;  // microseconds
};

// Of that name, in the file of `timeline_step`.
inline std::vector<Span> spansOf(const nlohmann::json& timeline, const std::string& name) {
  std::vector<Span> spans;
  for (const nlohmann::json& event : timeline["traceEvents"])
    if (event.value("ph", "") == "X" && event["name"] == name)
      spans.push_back({event["ts"], event["ts"].get<double>() + event["dur"].get<double>()});
  return spans;
}

}  // namespace dtf::testing
