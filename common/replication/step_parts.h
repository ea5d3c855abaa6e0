#pragma once

// An async job that reads every example once an epoch (cluster/batch_plan.h) gives each worker a
// part of the steps: the batches that have its number. A worker that has done its part waits for
// the others, but not for ever: only while one of them pushes, or may still return.

#include <cstdint>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/base/clock.h"

namespace dtf::replication {

// In a job of whole batches no worker has a part, and none is awaited.
// Borrows: the clock.
// Threads: thread-compatible.
class StepParts {
 public:
  struct Patience {
    Duration step{};    // with a worker that is here, from one step to the next
    Duration rejoin{};  // with one that is lost, until it returns
  };
  StepParts(const arena::ModelDeclaration& declaration, uint32_t workers, const Clock& clock,
            const Patience& patience);

  bool exist() const { return has_parts_; }

  // Notes that `rank` has pushed so many steps, over all its processes.
  void pushed(uint32_t rank, uint64_t steps);
  void joined(uint32_t rank);
  void pulled(uint32_t rank) { workers_[rank].moved = clock_.now(); }
  // A lost worker may return, a finished one does not.
  void lost(uint32_t rank);
  void finished(uint32_t rank);

  // Returns the workers that have steps of their parts left, and may still do them.
  std::vector<uint32_t> awaited() const;
  // Whether `rank` has done its part, and other workers are awaited.
  bool mustWait(uint32_t rank) const;
  // Whether `rank` holds nobody up: it has done its part and makes no steps of others'. That is so
  // while others are awaited, and when all have done their parts: another ps may lack the last push
  // of a worker that died in it, and there `rank` waits for the worker's return.
  bool rests(uint32_t rank) const;
  // Returns the workers whose parts are no longer awaited although steps of them are left: other
  // workers do those steps, with their own examples. Returns each worker once.
  std::vector<uint32_t> takeGivenUp();
  // Whether an awaited worker has pushed, pulled or joined in time, or may still return.
  bool makeHeadway() const;

 private:
  struct Worker {
    uint64_t pushed = 0;
    bool is_here = false;
    bool is_given_up = false;  // and takeGivenUp() has returned it
    TimePoint moved{};         // its last push, pull or joining
    TimePoint until{};         // end of the wait for its return
  };
  bool isAwaited(uint32_t rank) const;
  bool hasDonePart(uint32_t rank) const;

  const bool has_parts_;
  const uint64_t steps_;
  const Clock& clock_;
  const Patience patience_;
  std::vector<Worker> workers_;
};

}  // namespace dtf::replication
