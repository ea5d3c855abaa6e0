#include "common/engine/gradient_accumulator.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace dtf::engine {

GradientAccumulator::GradientAccumulator(std::string name, std::shared_ptr<ByteBudget> budget)
    : name_(std::move(name)), budget_(std::move(budget)) {
  DTF_CHECK(budget_ != nullptr);
}

ByteBudget::Share GradientAccumulator::shareOf(uint64_t bytes) const {
  return budget_->take(bytes, "a gradient that waits at the variable '" + name_ + "'");
}

bool GradientAccumulator::apply(int64_t version, Gradient gradient, int64_t arrived) {
  Gradients dropped;  // freed without the lock
  MutexLock lock(mutex_);
  const auto is_dead = [&](const std::shared_ptr<const Gradient>& old) {
    const bool is_left =
        old->rank == gradient.rank && old->ticket > arrived && old->ticket < gradient.ticket;
    return old->step != version || is_left;
  };
  const auto dead = std::stable_partition(gradients_.begin(), gradients_.end(),
                                          [&](const auto& old) { return !is_dead(old); });
  dropped.assign(std::make_move_iterator(dead), std::make_move_iterator(gradients_.end()));
  gradients_.erase(dead, gradients_.end());
  if (gradient.step != version) return false;
  if (gradients_.size() >= kGradientsMax)
    throw Error(ErrorCode::kUnavailable, "the variable '" + name_ + "' has " +
                                             std::to_string(kGradientsMax) +
                                             " waiting gradients already");
  gradients_.push_back(std::make_shared<const Gradient>(std::move(gradient)));
  return true;
}

GradientAccumulator::Gradients GradientAccumulator::find(std::span<const int64_t> tickets) const {
  Gradients found;
  MutexLock lock(mutex_);
  for (const int64_t ticket : tickets) {
    const auto at = std::find_if(gradients_.begin(), gradients_.end(),
                                 [&](const auto& each) { return each->ticket == ticket; });
    if (at == gradients_.end())
      throw Error(ErrorCode::kUnavailable,
                  "the variable '" + name_ +
                      "' lacks a gradient of the step: its value was set "
                      "meanwhile, or its task was started again; restore a "
                      "checkpoint");
    found.push_back(*at);
  }
  return found;
}

void GradientAccumulator::clear() {
  Gradients dropped;
  MutexLock lock(mutex_);
  gradients_.swap(dropped);
}

size_t GradientAccumulator::size() const {
  MutexLock lock(mutex_);
  return gradients_.size();
}

}  // namespace dtf::engine
