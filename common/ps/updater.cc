#include "common/ps/updater.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/trace.h"

namespace dtf::ps {

Updater::Updater(ParameterStore& store, UpdateRunner& runner, OutwardCalls& calls)
    : store_(store), runner_(runner), calls_(calls) {}

void Updater::start(std::vector<Gradient> gradients, std::function<void()> committed) {
  DTF_CHECK(!busy_);
  const OutwardCalls::Scope scope(calls_);
  if (store_.elements() * sizeof(float) <= kInlineUpdateBytes) {
    applyInline(std::move(gradients));
    return committed();
  }
  busy_ = true;
  std::shared_ptr<UpdateJob> job = store_.prepareApply(std::move(gradients));
  runner_.start(job,
                [this, job, committed = std::move(committed), alive = std::weak_ptr<char>(alive_),
                 begin = trace::recording() ? trace::now() : TimePoint{}] {
                  if (alive.expired()) return;
                  if (begin != TimePoint{}) trace::add("apply", begin, trace::now());
                  const OutwardCalls::Scope done_scope(calls_);
                  store_.commit(job);
                  busy_ = false;
                  for (const auto& waiter : std::exchange(idle_waiters_, {})) waiter();
                  committed();
                });
}

void Updater::whenIdle(std::function<void()> then) {
  if (!busy_) return then();
  idle_waiters_.push_back(std::move(then));
}

void Updater::applyInline(std::vector<Gradient> gradients) {
  const trace::Span span("apply");
  store_.apply(std::move(gradients));
}

}  // namespace dtf::ps
