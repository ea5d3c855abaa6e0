#pragma once

// `graph --timeline`: what the tasks did in one step of a graph, as a file.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "common/base/error.h"
#include "common/base/step_trace.h"

namespace dtf::launcher {

// Threads: thread-compatible.
// Blocks: on the disk.
class GraphTimeline {
 public:
  // `wanted`: the step; none: the second, which is the first that finds everything compiled and
  // connected, or the only one. `steps`: that there will be.
  // Errors: before anything runs: kCannotWrite or kPermission for a file that can't be written
  // there, kUsage for a step that there won't be.
  GraphTimeline(std::filesystem::path file, std::optional<int64_t> wanted, int64_t steps);

  bool wants(int64_t step) const { return step == step_; }
  int64_t step() const { return step_; }

  // Writes the file. What goes wrong is told by finish(), when the steps that follow have run.
  void write(std::span<const trace::TaskTrace> tasks);

  // Errors: why the file isn't there.
  void finish() const;

 private:
  const std::filesystem::path file_;
  const int64_t step_;
  std::optional<Error> failed_;
};

}  // namespace dtf::launcher
