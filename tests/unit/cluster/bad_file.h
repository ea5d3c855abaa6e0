#pragma once

// A file that is wrong, and what is said of it.

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
