#include "common/ps/updater.h"

#include "common/base/check.h"

namespace dtf::ps {

Updater::Updater(ParameterStore& store, UpdateRunner& runner, OutwardCalls& calls)
    : store_(store), runner_(runner), calls_(calls) {}

void Updater::start(std::vector<Gradient> gradients, std::function<void()> committed) {
  DTF_CHECK(!busy_);
  const OutwardCalls::Scope scope(calls_);
  if (store_.elements() * sizeof(float) <= kInlineUpdateBytes) {
    store_.apply(std::move(gradients));
    return committed();
  }
  busy_ = true;
  std::shared_ptr<UpdateJob> job = store_.prepareApply(std::move(gradients));
  runner_.start(job,
                [this, job, committed = std::move(committed), alive = std::weak_ptr<char>(alive_)] {
                  if (alive.expired()) return;
                  const OutwardCalls::Scope done_scope(calls_);
                  store_.commit(job);
                  busy_ = false;
                  committed();
                });
}

}  // namespace dtf::ps
