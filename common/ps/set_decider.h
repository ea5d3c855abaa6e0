#pragma once

// Sync training with backup workers: which workers' gradients make up a step, decided by ps/0 for
// all ps.

#include <cstdint>
#include <optional>
#include <vector>

namespace dtf::ps {

// Collects which ps hold whose gradient of the current step. A step is made of the first
// `ranks_needed` ranks whose gradients have arrived on ALL ps: so a decision never names a gradient
// that some ps lacks, and every ps applies the same set, whole, even if a worker dies while it
// pushes.
// Threads: thread-compatible.
class SetDecider {
 public:
  SetDecider(uint32_t ps_tasks, uint32_t workers, uint32_t ranks_needed);

  // Notes that `ps_task` holds the gradient of `rank`; again: no effect. Returns the set,
  // ascending, when this completes it; then nothing more until nextStep().
  std::optional<std::vector<uint32_t>> received(uint32_t ps_task, uint32_t rank);

  // `ps_task` may hold nothing of what was received from it, and reports again what it does hold. No effect
  // on a set that is complete.
  void forget(uint32_t ps_task);

  // Forgets everything: the next step begins.
  void nextStep();

 private:
  const uint32_t ps_tasks_;
  const uint32_t workers_;
  const uint32_t ranks_needed_;
  std::vector<bool> holds_;           // [rank * ps_tasks + ps_task]
  std::vector<uint32_t> holders_;     // per rank: how many ps hold its gradient
  std::vector<uint32_t> everywhere_;  // ranks whose gradients are on all ps, in that order
};

}  // namespace dtf::ps
