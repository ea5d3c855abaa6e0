#pragma once

// Which of the ways that a library offers was the fastest, kept from process to process: a text
// file in $XDG_CACHE_HOME/dtf, or ~/.cache/dtf. With it a step is ready sooner, and rounds as it
// did in the process before. It may be removed at any time.

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace dtf::gpu {

// Owns: what it has read and been told.
// Threads: one at a time; processes may share the file: what each has told is there once all have
// saved, or is timed again.
// Blocks: in the constructor and save(), for the disk.
// Errors: none. A file that can't be read, is damaged, or is of others counts as none; one that
// can't be written is not.
class PlanCache {
 public:
  // `identity`: what a choice is good for: the device, and the libraries with their versions. No
  // `folder`: nothing is kept.
  PlanCache(const std::filesystem::path& folder, const std::string& identity);

  // The number of the way for `key`, a line of text, among those that are offered.
  std::optional<size_t> find(const std::string& key) const;
  void add(const std::string& key, size_t way);
  // Writes what was added since. Takes up what others wrote meanwhile.
  void save();

 private:
  std::map<std::string, size_t> read() const;

  std::string identity_;
  std::filesystem::path file_;
  std::map<std::string, size_t> ways_;
  bool is_changed_ = false;
};

// Where it is kept; empty where the environment has neither.
std::filesystem::path planCacheFolder();

}  // namespace dtf::gpu
