#pragma once

// The worker that the others of a sync job wait for, as ps/0 finds it, and its log lines.

#include <cstdint>
#include <optional>

#include "common/arena/model_declaration.h"
#include "common/base/clock.h"
#include "common/replication/coordinator.h"
#include "common/replication/straggler_finder.h"

namespace dtf::shard {

// Where a step does not wait for every worker, as in async training, it names none.
// Owns: the times of the last steps of every worker.
// Borrows: `clock` (must outlive this).
// Threads: loop-thread only.
// Blocks: never. Allocates at the first gradient.
// Errors: none.
class StragglerWatch {
 public:
  StragglerWatch(uint32_t workers, const Clock& clock) : workers_(workers), clock_(clock) {}

  // Notes the times that a worker's push reports. Logs a change of straggler(), at most once in ten
  // seconds; a change that is over by then is not logged.
  void note(const replication::Contribution& push, const arena::ModelDeclaration& model);

  const std::optional<replication::Straggler>& straggler() const;

 private:
  void log(uint64_t step);

  const uint32_t workers_;
  const Clock& clock_;
  std::optional<replication::StragglerFinder> finder_;  // once times came
  std::optional<uint32_t> logged_;                      // the rank; nullopt: none
  std::optional<TimePoint> logged_at_;
};

}  // namespace dtf::shard
