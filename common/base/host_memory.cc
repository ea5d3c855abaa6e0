#include "common/base/host_memory.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/text.h"

namespace dtf {

namespace {

constexpr uint64_t kMemoryFileBytesMax = 1 << 16;
constexpr const char* kGroups = "/sys/fs/cgroup";
constexpr std::string_view kOfVersion2 = "0::";

uint64_t numberIn(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : 0;
}

// "MemTotal:       24033848 kB"
uint64_t bytesOf(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  return at == std::string_view::npos ? 0 : 1024 * numberIn(text.substr(at + name.size()));
}

std::string contentOf(const std::filesystem::path& path) {
  try {
    return readFile(path, kMemoryFileBytesMax);
  } catch (const Error&) {
    return {};  // the kernel has no such file: the limit is not known
  }
}

}  // namespace

HostMemory parseMemInfo(std::string_view text) {
  return {bytesOf(text, "MemTotal:") + bytesOf(text, "SwapTotal:"), bytesOf(text, "MemAvailable:")};
}

uint64_t cgroupLimit(std::string_view proc_self_cgroup, const std::filesystem::path& root,
                     std::string_view name) {
  std::filesystem::path group = "/";
  for (const std::string& line : split(proc_self_cgroup, '\n'))
    if (line.starts_with(kOfVersion2)) group = line.substr(kOfVersion2.size());
  uint64_t limit = 0;
  for (;; group = group.parent_path()) {
    const uint64_t own = numberIn(contentOf(root / group.relative_path() / name));
    if (own > 0) limit = limit == 0 ? own : std::min(limit, own);  // "max" reads as 0: no limit
    if (group == group.parent_path()) return limit;
  }
}

uint64_t ownCgroupLimit(std::string_view name) {
  return cgroupLimit(contentOf("/proc/self/cgroup"), kGroups, name);
}

HostMemory hostMemory() {
  HostMemory memory = parseMemInfo(contentOf("/proc/meminfo"));
  const uint64_t limit = ownCgroupLimit("memory.max");
  if (limit > 0 && memory.total > 0) {
    memory.total = std::min(memory.total, limit);
    memory.available = std::min(memory.available, limit);
  }
  return memory;
}

}  // namespace dtf
