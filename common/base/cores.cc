#include "common/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "common/base/check.h"

namespace dtf {
namespace {

constexpr std::string_view kControlGroups = "/sys/fs/cgroup";

int coresOfAffinity() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // It fails if the host has more cores than the set has room for; then all of them count.
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// "0::/a/b" in /proc/self/cgroup; empty where there are no control groups v2.
std::string ownGroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) return line.substr(3);
  return {};
}

std::string firstLine(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

int coresOfQuota(std::string_view cpu_max, int most) {
  DTF_CHECK(most >= 1);
  const char* const end = cpu_max.data() + cpu_max.size();
  int64_t quota = 0, period = 0;
  const auto [after, wrong] = std::from_chars(cpu_max.data(), end, quota);
  if (wrong != std::errc() || after == end || *after != ' ') return most;
  if (std::from_chars(after + 1, end, period).ec != std::errc()) return most;
  if (quota <= 0 || period <= 0) return most;
  return static_cast<int>(std::clamp<int64_t>(quota / period, 1, most));
}

int availableCores() {
  int cores = coresOfAffinity();
  std::filesystem::path group = ownGroup();
  // Each group above has its own quota. The root group has the file only inside a container.
  while (!group.empty()) {
    const auto file = std::filesystem::path(kControlGroups) / group.relative_path() / "cpu.max";
    cores = coresOfQuota(firstLine(file), cores);
    if (group == group.parent_path()) break;
    group = group.parent_path();
  }
  return cores;
}

}  // namespace dtf
