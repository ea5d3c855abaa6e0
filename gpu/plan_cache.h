#pragma once

// Remembers the fastest way of each library operation from process to process, in a text file in
// $XDG_CACHE_HOME/dtf or ~/.cache/dtf. With it a step is ready sooner, and rounds as in the
// previous process. It may be removed at any time.

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace dtf::gpu {

// Owns: entries from the file, and new ones.
// Threads: one at a time. Processes may share the file: an entry is available after its process has
// saved it, and otherwise timed again.
// Blocks: in the constructor and save(), for the disk.
// Errors: none. An unreadable, damaged or foreign file counts as empty; a file that can't be
// written is skipped.
class PlanCache {
 public:
  // `identity`: the validity of a choice: the device, and the libraries with their versions. An
  // empty `folder` disables the file.
  PlanCache(const std::filesystem::path& folder, const std::string& identity);

  // Returns the index of the way for `key`, a line of text, among the offered ways.
  std::optional<size_t> find(const std::string& key) const;
  void add(const std::string& key, size_t way);
  // Writes new entries, merged with entries that other processes have written.
  void save();

 private:
  std::map<std::string, size_t> read() const;

  std::string identity_;
  std::filesystem::path file_;
  std::map<std::string, size_t> ways_;
  bool is_changed_ = false;
};

// Returns the cache folder; empty if the environment has neither variable.
std::filesystem::path planCacheFolder();

}  // namespace dtf::gpu
