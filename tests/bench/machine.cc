#include "tests/bench/machine.h"

#include <fmt/core.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "common/base/isa.h"

namespace dtf::bench {

std::string cpuModel(const std::string& cpuinfo) {
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

std::string machine() {
  std::ostringstream cpuinfo;
  cpuinfo << std::ifstream("/proc/cpuinfo").rdbuf();
  return fmt::format("{}, {} cores, {}", cpuModel(cpuinfo.str()),
                     std::thread::hardware_concurrency(), isaName(bestIsa()));
}

}  // namespace dtf::bench
