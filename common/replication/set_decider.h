#pragma once

// Sync training with backup workers: ps/0 decides for all ps which workers' gradients make up a
// step.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace dtf::replication {

// Collects the ps that hold each worker's gradient of the current step. A step is made of the first
// ranks with gradients on ALL ps. So a decision never names a gradient that some ps lacks, and
// every ps applies the same set, whole, even if a worker dies while it pushes.
// Threads: thread-compatible.
class SetDecider {
 public:
  SetDecider(uint32_t ps_tasks, uint32_t workers);

  // Notes that `ps_task` holds the gradient of `rank`; again: no effect.
  void received(uint32_t ps_task, uint32_t rank);
  bool isEverywhere(uint32_t rank) const { return holders_.at(rank) == ps_tasks_; }

  // Returns the set, ascending: the first `needed` ranks for which `counts` is true. nullopt: there
  // are fewer, `needed` is 0, or the step has its set. A set is returned once a step.
  std::optional<std::vector<uint32_t>> decide(uint32_t needed,
                                              const std::function<bool(uint32_t rank)>& counts);

  // Forgets the reports of `ps_task`, which will report again. No effect on a set that is decided.
  void forget(uint32_t ps_task);

  // Forgets everything: the next step begins.
  void nextStep();

 private:
  const uint32_t ps_tasks_;
  const uint32_t workers_;
  std::vector<bool> holds_;           // [rank * ps_tasks + ps_task]
  std::vector<uint32_t> holders_;     // per rank: how many ps hold its gradient
  std::vector<uint32_t> everywhere_;  // ranks with gradients on all ps, in order of arrival
  bool decided_ = false;
};

}  // namespace dtf::replication
