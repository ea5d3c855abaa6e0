#include "common/train/kernel_cache.h"

#include <cstdlib>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/log.h"

namespace dtf::train {

namespace {

constexpr int kCacheSchema = 1;

// Returns the text that the checksum covers.
std::string textOf(const std::map<std::string, std::map<std::string, std::string>>& machines) {
  return Json(machines).dump();
}

}  // namespace

std::filesystem::path KernelCache::defaultFile() {
  const auto folder = [](const char* variable) -> std::filesystem::path {
    const char* const value = std::getenv(variable);
    return value != nullptr && *value == '/' ? value : "";
  };
  if (const auto cache = folder("XDG_CACHE_HOME"); !cache.empty())
    return cache / "dtf" / "kernels.json";
  const auto home = folder("HOME");
  return home.empty() ? home : home / ".cache" / "dtf" / "kernels.json";
}

std::map<std::string, KernelCache::Ways> KernelCache::read() const {
  std::error_code gone;
  if (file_.empty() || !std::filesystem::exists(file_, gone)) return {};
  std::string why = "it is damaged";
  try {
    const Json json = Json::parse(readFile(file_, kBytesMax));
    std::map<std::string, Ways> machines;
    for (const auto& [machine, ways] : json.at("machines").members())
      for (const auto& [convolution, way] : ways.members())
        machines[machine][convolution] = way.asString();
    if (json.at("schema") == kCacheSchema &&
        json.at("checksum") == hexOf(checksumOf(textOf(machines))))
      return machines;
  } catch (const Error& error) {
    why = error.message();
  }
  log::warning("event=kernel_cache_ignored file=\"{}\" reason=\"{}\"", file_.string(), why);
  return {};
}

std::optional<std::string> KernelCache::find(const std::string& machine,
                                             const std::string& convolution) const {
  const std::map<std::string, Ways> machines = read();
  const auto ways = machines.find(machine);
  if (ways == machines.end()) return std::nullopt;
  const auto way = ways->second.find(convolution);
  return way == ways->second.end() ? std::nullopt : std::optional(way->second);
}

void KernelCache::keep(const std::string& machine, const std::string& convolution,
                       const std::string& way) {
  DTF_CHECK(!machine.empty() && !convolution.empty() && !way.empty());
  if (file_.empty()) return;
  std::map<std::string, Ways> machines = read();
  const auto add = [&] {
    machines[machine][convolution] = way;
    size_t entries = 0;
    for (const auto& [name, ways] : machines) entries += ways.size();
    const std::string text = textOf(machines);
    Json json = {{"schema", kCacheSchema}, {"checksum", hexOf(checksumOf(text))}};
    json["machines"] = machines;
    std::string bytes = json.dump(1) + "\n";
    return entries > kEntriesMax || bytes.size() > kBytesMax ? std::string() : bytes;
  };
  std::string bytes = add();
  if (bytes.empty()) {
    machines = {{machine, std::move(machines[machine])}};
    bytes = add();
  }
  if (bytes.empty()) {
    machines.clear();
    bytes = add();
  }
  try {
    std::error_code refused;  // ignored: then the file can't be written
    std::filesystem::create_directories(file_.parent_path(), refused);
    atomicReplace(file_, bytes);
  } catch (const Error& error) {
    log::warning("event=kernel_cache_not_written reason=\"{}\"", error.message());
  }
}

}  // namespace dtf::train
