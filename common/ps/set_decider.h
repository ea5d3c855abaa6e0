#pragma once

// Sync training with backup workers: which workers' gradients make up a step, decided by ps/0 for
// all ps.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace dtf::ps {

// Collects which ps hold whose gradient of the current step. A step is made of the first ranks
// whose gradients have arrived on ALL ps: so a decision never names a gradient that some ps lacks,
// and every ps applies the same set, whole, even if a worker dies while it pushes.
// Threads: thread-compatible.
class SetDecider {
 public:
  SetDecider(uint32_t ps_tasks, uint32_t workers);

  // Notes that `ps_task` holds the gradient of `rank`; again: no effect.
  void received(uint32_t ps_task, uint32_t rank);
  bool isEverywhere(uint32_t rank) const { return holders_.at(rank) == ps_tasks_; }

  // The set, ascending: the first `needed` of the ranks that `counts` takes. nullopt: they are
  // fewer, or `needed` is 0, or the step has its set. A set is returned once a step.
  std::optional<std::vector<uint32_t>> decide(uint32_t needed,
                                              const std::function<bool(uint32_t rank)>& counts);

  // `ps_task` may hold nothing of what was received from it, and reports again what it does hold.
  // No effect on a set that is decided.
  void forget(uint32_t ps_task);

  // Forgets everything: the next step begins.
  void nextStep();

 private:
  const uint32_t ps_tasks_;
  const uint32_t workers_;
  std::vector<bool> holds_;           // [rank * ps_tasks + ps_task]
  std::vector<uint32_t> holders_;     // per rank: how many ps hold its gradient
  std::vector<uint32_t> everywhere_;  // ranks whose gradients are on all ps, in that order
  bool decided_ = false;
};

}  // namespace dtf::ps
