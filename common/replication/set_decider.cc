#include "common/replication/set_decider.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::replication {

SetDecider::SetDecider(uint32_t ps_tasks, uint32_t workers)
    : ps_tasks_(ps_tasks), workers_(workers) {
  nextStep();
}

void SetDecider::nextStep() {
  holds_.assign(size_t{workers_} * ps_tasks_, false);
  holders_.assign(workers_, 0);
  everywhere_.clear();
  decided_ = false;
}

void SetDecider::forget(uint32_t ps_task) {
  DTF_CHECK(ps_task < ps_tasks_);
  if (decided_) return;
  for (uint32_t rank = 0; rank < workers_; ++rank) {
    const size_t index = size_t{rank} * ps_tasks_ + ps_task;
    if (!holds_[index]) continue;
    holds_[index] = false;
    if (holders_[rank]-- == ps_tasks_) std::erase(everywhere_, rank);
  }
}

void SetDecider::received(uint32_t ps_task, uint32_t rank) {
  DTF_CHECK(ps_task < ps_tasks_ && rank < workers_);
  const size_t index = size_t{rank} * ps_tasks_ + ps_task;
  if (holds_[index]) return;
  holds_[index] = true;
  if (++holders_[rank] == ps_tasks_) everywhere_.push_back(rank);
}

std::optional<std::vector<uint32_t>> SetDecider::decide(
    uint32_t needed, const std::function<bool(uint32_t rank)>& counts) {
  if (decided_ || needed == 0) return std::nullopt;
  std::vector<uint32_t> ranks;
  for (const uint32_t rank : everywhere_)
    if (ranks.size() < needed && counts(rank)) ranks.push_back(rank);
  if (ranks.size() < needed) return std::nullopt;
  decided_ = true;
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace dtf::replication
