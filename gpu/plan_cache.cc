#include "gpu/plan_cache.h"

#include <unistd.h>

#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace dtf::gpu {
namespace {

constexpr const char* kFirstLine = "dtf gpu plans 2\n";
constexpr size_t kBytesMax = size_t{4} << 20;

// FNV-1a, 64 bits: detects incomplete and edited files, not attacks.
uint64_t checksumOf(const std::string& text) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return sum;
}

std::string fileNameOf(const std::string& identity) {
  std::string name = "gpu-plans-";
  for (const char c : identity)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ? c : '-';
  return name + ".txt";
}

}  // namespace

std::filesystem::path planCacheFolder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return std::filesystem::path(cache) / "dtf";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::filesystem::path(home) / ".cache/dtf";
  return {};
}

PlanCache::PlanCache(const std::filesystem::path& folder, const std::string& identity)
    : identity_(identity) {
  if (folder.empty()) return;
  file_ = folder / fileNameOf(identity);
  ways_ = read();
}

// The file has a line with the format, a line with the identity, "way key" lines, and a checksum of
// all lines before it.
std::map<std::string, size_t> PlanCache::read() const {
  std::ifstream in(file_, std::ios::binary);
  std::string text(kBytesMax, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  const size_t end = text.rfind("checksum ");
  const std::string head = kFirstLine + identity_ + "\n";
  if (end == std::string::npos || text.compare(0, head.size(), head) != 0) return {};
  uint64_t sum = 0;
  const char* const digits = text.data() + end + 9;
  if (std::from_chars(digits, text.data() + text.size(), sum).ec != std::errc() ||
      sum != checksumOf(text.substr(0, end)))
    return {};
  std::map<std::string, size_t> ways;
  std::istringstream lines(text.substr(head.size(), end - head.size()));
  for (std::string line; std::getline(lines, line);) {
    size_t way = 0;
    const auto number = std::from_chars(line.data(), line.data() + line.size(), way);
    const auto digits_end = static_cast<size_t>(number.ptr - line.data());
    if (number.ec == std::errc() && digits_end + 1 < line.size())
      ways[line.substr(digits_end + 1)] = way;
  }
  return ways;
}

std::optional<size_t> PlanCache::find(const std::string& key) const {
  const auto at = ways_.find(key);
  return at == ways_.end() ? std::nullopt : std::optional(at->second);
}

void PlanCache::add(const std::string& key, size_t way) {
  ways_[key] = way;
  is_changed_ = true;
}

void PlanCache::save() {
  if (!is_changed_ || file_.empty()) return;
  is_changed_ = false;
  std::map<std::string, size_t> all = read();
  for (const auto& [key, way] : ways_) all[key] = way;
  std::string text = kFirstLine + identity_ + "\n";
  for (const auto& [key, way] : all) text += std::to_string(way) + " " + key + "\n";
  text += "checksum " + std::to_string(checksumOf(text)) + "\n";
  std::error_code ignored;
  std::filesystem::create_directories(file_.parent_path(), ignored);
  // Unique for this object of this process.
  const std::filesystem::path unfinished = file_.string() + "." + std::to_string(::getpid()) + "." +
                                           std::to_string(reinterpret_cast<uintptr_t>(this));
  {
    std::ofstream out(unfinished, std::ios::binary);
    out << text;
    out.flush();
    if (!out) {
      std::filesystem::remove(unfinished, ignored);
      return;
    }
  }
  std::filesystem::rename(unfinished, file_, ignored);
  if (ignored) std::filesystem::remove(unfinished, ignored);
}

}  // namespace dtf::gpu
