#pragma once

// Which way convolutions were the fastest on this machine, over all runs of this user: what was
// timed once need not be timed again. What a run has chosen stands in the run's own folder
// (kernel_choices.h); this file may be removed at any time.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace dtf::train {

// Owns: nothing but the file's name. The file is read and replaced as a whole: of two that write at
// the same time one may lose its entry, which is then timed once more.
// Threads: thread-compatible.
// Blocks: on the disk, shortly.
// Errors: none. A file that can't be read, or is damaged (it has a checksum), is ignored and
// replaced; one that can't be written is left: both with a warning.
class KernelCache {
 public:
  // Of a file beyond these, only what belongs to the machine that asks is kept, or nothing.
  static constexpr size_t kEntriesMax = 4096;
  static constexpr uint64_t kBytesMax = uint64_t{2} << 20;

  // Remembers nothing.
  KernelCache() = default;
  explicit KernelCache(std::filesystem::path file) : file_(std::move(file)) {}

  // dtf/kernels.json in $XDG_CACHE_HOME, else in ~/.cache; empty where the user has neither.
  static std::filesystem::path defaultFile();

  // `machine`: the processor and whatever else changes which way is the fastest.
  std::optional<std::string> find(const std::string& machine, const std::string& convolution) const;
  void keep(const std::string& machine, const std::string& convolution, const std::string& way);

 private:
  using Ways = std::map<std::string, std::string>;  // by convolution
  std::map<std::string, Ways> read() const;         // by machine

  std::filesystem::path file_;  // empty: none
};

}  // namespace dtf::train
