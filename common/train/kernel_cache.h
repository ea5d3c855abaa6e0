#pragma once

// The fastest way of each convolution on this machine, for all runs of this user, so that each is
// timed once. A run keeps its choices in its own folder (kernel_choices.h), so this file may be
// removed at any time.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace dtf::train {

// Owns: the name of the file. The file is read and replaced as a whole. If two processes write at
// the same time, one may lose its entry, which is then timed again.
// Threads: thread-compatible.
// Blocks: on the disk, shortly.
// Errors: none. A file that is unreadable or damaged (it has a checksum) is ignored and replaced;
// one that can't be written is left. Both cases log a warning.
class KernelCache {
 public:
  // Limits of the file. Beyond them it keeps only the entries of the current machine, or none.
  static constexpr size_t kEntriesMax = 4096;
  static constexpr uint64_t kBytesMax = uint64_t{2} << 20;

  // A cache without a file, which remembers nothing.
  KernelCache() = default;
  explicit KernelCache(std::filesystem::path file) : file_(std::move(file)) {}

  // Returns dtf/kernels.json in $XDG_CACHE_HOME, else in ~/.cache; empty if the user has neither.
  static std::filesystem::path defaultFile();

  // `machine`: the processor, and all else that affects which way is the fastest.
  std::optional<std::string> find(const std::string& machine, const std::string& convolution) const;
  void keep(const std::string& machine, const std::string& convolution, const std::string& way);

 private:
  using Ways = std::map<std::string, std::string>;  // by convolution
  std::map<std::string, Ways> read() const;         // by machine

  std::filesystem::path file_;  // empty: none
};

}  // namespace dtf::train
