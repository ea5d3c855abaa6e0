#include "common/base/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/text.h"

namespace dtf {

namespace {

constexpr uint64_t kProcFileBytesMax = 1 << 20;  // /proc/stat has a line for each core

std::string contentOf(const char* path) {
  try {
    return readFile(path, kProcFileBytesMax);
  } catch (const Error&) {
    return {};
  }
}

double numberOf(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return static_cast<double>(number);
}

double cpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Returns the boot time of the host in seconds since 1970: "btime 1732420000" in /proc/stat.
std::optional<double> bootTime() {
  for (const std::string& line : split(contentOf("/proc/stat"), '\n'))
    if (line.starts_with("btime ")) return numberOf(std::string_view(line).substr(6));
  return std::nullopt;
}

// proc(5) numbers the fields of /proc/self/stat from 1. The third field follows the name in
// brackets, which may contain spaces.
void addStat(std::vector<Metric>& metrics) {
  const std::string stat = contentOf("/proc/self/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return;
  const std::vector<std::string> fields = split(stat.substr(name_end + 1), ' ');  // from " S ..."
  const auto field = [&fields](size_t number) { return numberOf(fields[number - 2]); };
  constexpr size_t kThreads = 20, kStart = 22, kVirtual = 23, kResident = 24;
  if (fields.size() <= kResident) return;
  metrics.push_back(gauge("process_threads", "Threads of this process.", field(kThreads)));
  metrics.push_back(
      gauge("process_virtual_memory_bytes", "Address space in use.", field(kVirtual)));
  metrics.push_back(gauge("process_resident_memory_bytes", "Memory in use.",
                          field(kResident) * static_cast<double>(::sysconf(_SC_PAGESIZE))));
  if (const std::optional<double> boot = bootTime())
    metrics.push_back(gauge("process_start_time_seconds",
                            "Start of this process, in seconds since 1970.",
                            *boot + field(kStart) / static_cast<double>(::sysconf(_SC_CLK_TCK))));
}

void addDescriptors(std::vector<Metric>& metrics) {
  std::error_code error;
  const std::filesystem::directory_iterator open("/proc/self/fd", error);
  if (error) return;
  // One descriptor belongs to the iterator.
  const auto count = std::distance(std::filesystem::begin(open), std::filesystem::end(open)) - 1;
  metrics.push_back(
      gauge("process_open_fds", "File descriptors in use.", static_cast<double>(count)));
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    metrics.push_back(gauge("process_max_fds",
                            "Largest number of file descriptors of this process.",
                            static_cast<double>(limit.rlim_cur)));
}

}  // namespace

std::vector<Metric> processMetrics() {
  std::vector<Metric> metrics = {counter(
      "process_cpu_seconds_total", "CPU time of this process, of all threads.", cpuSeconds())};
  addStat(metrics);
  addDescriptors(metrics);
  return metrics;
}

}  // namespace dtf
