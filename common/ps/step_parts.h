#pragma once

// The steps of an async job that are each worker's own, where every example counts once an epoch
// (cluster/batch_plan.h): the batches that have its number. A worker that has done its part waits
// until the others have done theirs, but not for ever: an awaited worker makes headway while it
// pushes, or may still return.

#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/ps/parameter_client.h"

namespace dtf::ps {

// In a job of whole batches no worker has a part, and none is awaited.
// Borrows: the clock.
// Threads: thread-compatible.
class StepParts {
 public:
  struct Patience {
    Duration step{};    // with a worker that is here, from one step to the next
    Duration rejoin{};  // with one that is lost, until it returns
  };
  StepParts(const ModelDeclaration& declaration, uint32_t workers, const Clock& clock,
            const Patience& patience);

  bool exist() const { return has_parts_; }

  // `rank` has pushed so many steps, over all its processes.
  void pushed(uint32_t rank, uint64_t steps);
  void joined(uint32_t rank);
  void pulled(uint32_t rank) { workers_[rank].moved = clock_.now(); }
  // A lost worker may return, a finished one does not.
  void lost(uint32_t rank);
  void finished(uint32_t rank);

  // The workers that have steps of their parts to do, and may still do them.
  std::vector<uint32_t> awaited() const;
  // Whether `rank` has done its part, and other workers are awaited.
  bool mustWait(uint32_t rank) const;
  // Whether an awaited worker makes headway.
  bool makeHeadway() const;

 private:
  struct Worker {
    uint64_t pushed = 0;
    bool is_here = false;
    TimePoint moved{};  // its last push, pull or joining
    TimePoint until{};  // when its return is awaited no longer
  };
  bool isAwaited(uint32_t rank) const;
  bool hasDonePart(uint32_t rank) const;

  const bool has_parts_;
  const uint64_t steps_;
  const Clock& clock_;
  const Patience patience_;
  std::vector<Worker> workers_;
};

}  // namespace dtf::ps
