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
  if (isSmall()) {
    {
      const trace::Span span("apply");
      store_.apply(std::move(gradients));
    }
    return committed();
  }
  busy_ = true;
  if (!copying_) return launch(std::move(gradients), std::move(committed));
  launch_after_copy_ = [this, gradients = std::move(gradients), committed = std::move(committed)] {
    launch(gradients, committed);
  };
}

void Updater::launch(std::vector<Gradient> gradients, std::function<void()> committed) {
  DTF_CHECK(busy_ && !copying_);
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

void Updater::copySlots(std::function<void(std::vector<Buffer>)> copied) {
  DTF_CHECK(!copying_ && (!busy_ || launch_after_copy_ != nullptr));  // nothing runs
  const OutwardCalls::Scope scope(calls_);
  if (store_.slotCount() == 0) return copied({});
  std::shared_ptr<UpdateJob> job = store_.prepareCopy();
  if (isSmall()) {
    job->runAll();
    return copied(job->takeCopies());
  }
  copying_ = true;
  runner_.start(job, [this, job, copied = std::move(copied), alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    const OutwardCalls::Scope done_scope(calls_);
    copying_ = false;
    copied(job->takeCopies());
    if (copying_) return;  // there is one more
    if (const auto launch = std::exchange(launch_after_copy_, nullptr)) launch();
  });
}

void Updater::whenIdle(std::function<void()> then) {
  if (!busy_) return then();
  idle_waiters_.push_back(std::move(then));
}

}  // namespace dtf::ps
