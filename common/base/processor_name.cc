#include "common/base/processor_name.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace dtf {

std::string processorNameIn(std::string_view cpuinfo) {
  for (size_t at = 0; at < cpuinfo.size();) {
    const size_t end = std::min(cpuinfo.find('\n', at), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(at, end - at);
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string_view::npos)
      return std::string(line.substr(colon + 2));
    at = end + 1;
  }
  return "unknown CPU";
}

std::string processorName() {
  std::ostringstream cpuinfo;
  cpuinfo << std::ifstream("/proc/cpuinfo").rdbuf();
  return processorNameIn(cpuinfo.str());
}

}  // namespace dtf
