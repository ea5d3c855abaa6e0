#include "common/yaml/expand_path.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "common/yaml/report.h"

namespace dtf::yaml {

namespace {

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

// The values are not expanded again.
std::string expandVariables(std::string& path) {
  for (size_t at = path.find("${"); at != std::string::npos; at = path.find("${", at)) {
    const size_t end = path.find('}', at);
    if (end == std::string::npos)
      return inQuotes(path.substr(at)) + " has no closing '}': write ${NAME}";
    const std::string name = path.substr(at + 2, end - at - 2);
    const char* value = name.empty() ? nullptr : std::getenv(name.c_str());
    if (value == nullptr || *value == '\0')
      return inQuotes("${" + name + "}") +
             " is not set in the environment of this process: set it, or write the whole path";
    const std::string_view text = value;
    path.replace(at, end + 1 - at, text);
    at += text.size();
  }
  return "";
}

}  // namespace

std::string expandPath(std::string& path) {
  std::string expanded = path;
  std::string wrong = expandHome(expanded);
  if (wrong.empty()) wrong = expandVariables(expanded);
  if (wrong.empty()) path = std::move(expanded);
  return wrong;
}

}  // namespace dtf::yaml
