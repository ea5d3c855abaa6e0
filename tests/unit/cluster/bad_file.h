#pragma once

// A wrong file, and the error about it.

#include <string>
#include <string_view>

namespace dtf::cluster {

struct BadFile {
  std::string_view text;
  std::string_view first_line;  // of the report, exactly
};

inline std::string firstLine(const std::string& report) {
  return report.substr(0, report.find('\n'));
}

}  // namespace dtf::cluster
