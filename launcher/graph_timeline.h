#pragma once

// `graph --timeline`: what the tasks did in one step of a graph, as a file.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "common/base/error.h"
#include "common/base/step_trace.h"

namespace dtf::launcher {

// Writes the record of one step of this process.
// Owns: nothing but its settings. Threads: thread-compatible. Blocks: on the disk.
// Errors: of the file, see the methods.
class GraphTimeline {
 public:
  // `wanted`: the step; none: the second, which is the first that finds everything compiled and
  // connected, or the only one. `steps`: that there will be.
  // Errors: before anything runs: kCannotWrite or kPermission for a file that can't be written
  // there, kUsage for a step that there won't be.
  GraphTimeline(std::filesystem::path file, std::optional<int64_t> wanted, int64_t steps);

  // Sets the number of steps that earlier processes have done: `wanted` counts from there.
  void startAfter(int64_t done);

  // A step whose values were lost has no record: then a later one is wanted.
  bool wants(int64_t step) const { return step >= step_ && !is_written_; }

  // Writes the file. finish() reports a failure, when the steps that follow have run.
  void write(int64_t step, std::span<const trace::TaskTrace> tasks);

  // Errors: the reason why the file isn't there; kUsage if no step was recorded.
  void finish() const;

 private:
  const std::filesystem::path file_;
  const std::optional<int64_t> wanted_;
  const int64_t steps_;
  int64_t step_;
  bool is_written_ = false;
  std::optional<Error> failed_;
};

}  // namespace dtf::launcher
