#include "common/ps/set_decider.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::ps {

SetDecider::SetDecider(uint32_t ps_tasks, uint32_t workers, uint32_t ranks_needed)
    : ps_tasks_(ps_tasks), workers_(workers), ranks_needed_(ranks_needed) {
  nextStep();
}

void SetDecider::nextStep() {
  holds_.assign(size_t{workers_} * ps_tasks_, false);
  holders_.assign(workers_, 0);
  everywhere_.clear();
}

void SetDecider::forget(uint32_t ps_task) {
  DTF_CHECK(ps_task < ps_tasks_);
  if (everywhere_.size() >= ranks_needed_) return;
  for (uint32_t rank = 0; rank < workers_; ++rank) {
    const size_t index = size_t{rank} * ps_tasks_ + ps_task;
    if (!holds_[index]) continue;
    holds_[index] = false;
    if (holders_[rank]-- == ps_tasks_) std::erase(everywhere_, rank);
  }
}

std::optional<std::vector<uint32_t>> SetDecider::received(uint32_t ps_task, uint32_t rank) {
  DTF_CHECK(ps_task < ps_tasks_ && rank < workers_);
  const size_t index = size_t{rank} * ps_tasks_ + ps_task;
  if (holds_[index]) return std::nullopt;
  holds_[index] = true;
  if (++holders_[rank] < ps_tasks_) return std::nullopt;
  everywhere_.push_back(rank);
  if (everywhere_.size() != ranks_needed_) return std::nullopt;
  std::vector<uint32_t> ranks = everywhere_;
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace dtf::ps
