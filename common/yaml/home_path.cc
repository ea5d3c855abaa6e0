#include "common/yaml/home_path.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "common/yaml/report.h"

namespace dtf::yaml {

std::string expandHome(std::string& path) {
  if (!path.starts_with('~')) return "";
  const std::string_view first = std::string_view(path).substr(0, path.find('/'));
  if (first.size() > 1) return inQuotes(first) + " is not expanded: write the whole path";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/')
    return "'~' stands for HOME, which is not set: write the whole path";
  path.replace(0, 1, home);
  return "";
}

}  // namespace dtf::yaml
