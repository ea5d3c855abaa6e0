#pragma once

// Bounded training (stale synchronous parallel: Ho et al., "More Effective Distributed ML via a
// Stale Synchronous Parallel Parameter Server", NIPS 2013) adds one rule to async training: no
// worker begins a step while its clock is more than `staleness` steps ahead of the slowest. Every
// ps holds its answer until then, so the parameters contain all pushes of the others up to
// `staleness` steps before. With overlap a step begins before the answer, and the parameters may
// lack one more. ps/0 assigns each worker's clock; the workers bring it to the other ps
// (step_agreement.h). The clock is not the worker's count of steps: a new process begins at the
// slowest clock. The other ps learn of a new process after ps/0, so their answers meanwhile may
// lack its first push.
//
// A worker counts while its clock is part of the minimum:
//
//   event                      counts           its clock
//   a new process joins        no
//   its first pull, on ps/0    yes              the slowest that counts; if none does, the furthest
//                                               known
//   it brings its clock to     yes              as brought
//   another ps
//   its push is applied        yes              one more; on ps other than ps/0, than brought.
//                                               If it didn't count, on ps/0: the slowest that
//                                               counts
//   lost, or finished          no
//   its part is done           no, while it rests (step_parts.h)
//   ps/0 was refilled          once it joined   as remembered, if that is near the furthest

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/replication/step_state.h"

namespace dtf::replication {

// The clocks of a job's workers, as one ps knows them, and which of them is too far ahead. Without
// a bound no call has an effect, and no worker is.
// Owns: the clocks.
// Threads: loop-thread only.
// Blocks: never.
class StalenessBound {
 public:
  // `leads`: this is ps/0. `rests(rank)`: StepParts::rests(), called whenever a clock changes.
  StalenessBound(std::optional<uint64_t> staleness, uint32_t workers, bool leads,
                 std::function<bool(uint32_t)> rests);

  bool exists() const { return staleness_.has_value(); }
  // Precondition: exists().
  uint64_t staleness() const { return staleness_.value(); }

  // Whether a push can bring this clock. Without a bound: always.
  bool isSane(uint64_t clock) const;

  // Starts the clock of a worker that doesn't count: on ps/0 at the slowest, on another ps at the
  // clock that the worker brings (`brought`; 0: none yet).
  void begin(uint32_t rank, uint64_t brought);
  // Returns the clock after a push that brought `brought`; 0 without a bound. ps/0 uses its own
  // record. If it didn't count the worker, it assumes the slowest clock, so that it doesn't hold a
  // worker for which another ps may wait.
  uint64_t after(uint32_t rank, uint64_t brought) const;
  // Notes that such a push was applied.
  void advance(uint32_t rank, uint64_t brought);
  // Notes that the worker was lost or has finished.
  void countNoMore(uint32_t rank);

  // Notes the clock that a replica remembers, of a worker that doesn't count yet.
  void remember(uint32_t rank, uint64_t clock);
  // Decides whether a remembered worker counts again, which is so for a process that `is_here`. One
  // far behind was lost long before. The other ps wait until it brings its clock: their earlier
  // process may have received kProgressEnd, which is not remembered.
  void recall(uint32_t rank, bool is_here);

  // Finds the slowest clock anew, when a worker may have begun to rest.
  void findSlowest();

  // Whether the worker may not begin a step yet.
  bool mustWait(uint32_t rank) const;
  // Returns the workers for which it must wait.
  std::vector<uint32_t> behind(uint32_t rank) const;

  // Returns the clock, also of a worker that doesn't count.
  uint64_t clock(uint32_t rank) const { return workers_[rank].clock; }
  bool counts(uint32_t rank) const { return workers_[rank].counts; }

 private:
  struct Worker {
    uint64_t clock = 0;
    bool counts = false;
  };
  uint64_t furthest() const;
  uint64_t firstClock() const;

  const std::optional<uint64_t> staleness_;
  const bool leads_;
  const std::function<bool(uint32_t)> rests_;
  std::vector<Worker> workers_;
  uint64_t slowest_ = kProgressEnd;  // of the workers that count
};

}  // namespace dtf::replication
