#include "common/train/host_memory.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "common/base/error.h"
#include "common/base/file.h"

namespace dtf::train {

namespace {

constexpr uint64_t kFileBytesMax = 1 << 16;
constexpr const char* kContainerLimit = "/sys/fs/cgroup/memory.max";

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

std::string contentOf(const char* path) {
  try {
    return readFile(path, kFileBytesMax);
  } catch (const Error&) {
    return {};  // no such file on this kernel: the limit is not known
  }
}

}  // namespace

HostMemory parseMemInfo(std::string_view text) {
  return {bytesOf(text, "MemTotal:") + bytesOf(text, "SwapTotal:"), bytesOf(text, "MemAvailable:")};
}

HostMemory hostMemory() {
  HostMemory memory = parseMemInfo(contentOf("/proc/meminfo"));
  const uint64_t limit = numberIn(contentOf(kContainerLimit));  // "max": none, which reads as 0
  if (limit > 0 && memory.total > 0) {
    memory.total = std::min(memory.total, limit);
    memory.available = std::min(memory.available, limit);
  }
  return memory;
}

}  // namespace dtf::train
