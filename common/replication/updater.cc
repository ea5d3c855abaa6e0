#include "common/replication/updater.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/trace.h"

namespace dtf::replication {

Updater::Updater(optimizer::ParameterStore& store, optimizer::UpdateRunner& runner,
                 OutwardCalls& calls, Replicator* replicator)
    : store_(store), runner_(runner), calls_(calls), replicator_(replicator) {}

void Updater::start(std::vector<arena::Gradient> gradients, UpdateNote note,
                    std::function<void()> committed) {
  DTF_CHECK(!busy_ && !gradients.empty());
  const OutwardCalls::Scope scope(calls_);
  if (replicator_ == nullptr && runsInPlace()) {
    {
      const trace::Span span("apply");
      store_.apply(std::move(gradients));
    }
    callWaiters();
    return committed();
  }
  busy_ = true;
  std::function<void()> go;
  if (replicator_ == nullptr)
    go = [this, gradients = std::move(gradients), committed = std::move(committed)]() mutable {
      launch(std::move(gradients), std::move(committed));
    };
  else
    go = [this, gradients = std::move(gradients), note = std::move(note),
          committed = std::move(committed)]() mutable {
      launchReplicated(std::move(gradients), note, std::move(committed));
    };
  if (!copying_) return go();
  launch_after_copy_ = std::move(go);
}

// Calls `done` when the job has run, unless this updater is gone by then.
void Updater::run(std::shared_ptr<optimizer::UpdateJob> job, std::function<void()> done) {
  if (runsInPlace()) {
    job->runAll();
    return done();
  }
  runner_.start(std::move(job),
                [this, done = std::move(done), alive = std::weak_ptr<char>(alive_)] {
                  if (alive.expired()) return;
                  const OutwardCalls::Scope done_scope(calls_);
                  done();
                });
}

void Updater::launch(std::vector<arena::Gradient> gradients, std::function<void()> committed) {
  DTF_CHECK(busy_ && !copying_);
  const std::shared_ptr<optimizer::UpdateJob> job = store_.prepareApply(std::move(gradients));
  run(job, [this, job, committed = std::move(committed), begun = trace::begin()] {
    trace::end("apply", begun);
    commit(job, committed);
  });
}

void Updater::commit(const std::shared_ptr<optimizer::UpdateJob>& job,
                     const std::function<void()>& committed) {
  DTF_CHECK(busy_);
  store_.commit(job);
  busy_ = false;
  callWaiters();
  committed();
}

void Updater::callWaiters() {
  for (const auto& waiter : std::exchange(idle_waiters_, {})) waiter();
}

// ---- with a replica

// Sends and applies one gradient, so that both shards compute the same bits.
void Updater::launchReplicated(std::vector<arena::Gradient> gradients, const UpdateNote& note,
                               std::function<void()> committed) {
  DTF_CHECK(busy_ && !copying_);
  const auto with_mean = [this, note,
                          committed = std::move(committed)](const arena::Gradient& mean) {
    replicator_->whenWhole([this, mean, note, committed] { replicate(mean, note, committed); });
  };
  // The message to the replica may outlast the answer to the worker, as when the job goes back. A
  // mean of several gradients is a copy.
  if (gradients.size() == 1)
    return with_mean(gradients[0].is_lent ? store_.copyOf(gradients[0]) : gradients[0]);
  const std::shared_ptr<optimizer::UpdateJob> job = store_.prepareMean(std::move(gradients));
  run(job, [job, with_mean] { with_mean(job->takeMean()); });
}

void Updater::replicate(const arena::Gradient& mean, const UpdateNote& note,
                        std::function<void()> committed) {
  DTF_CHECK(busy_ && replicated_.job == nullptr);
  replicator_->send(mean, note, [this] {
    replicated_.received = true;
    commitReplicated();
  });
  replicated_ = {store_.prepareApply({mean}), std::move(committed), false, false};
  run(replicated_.job, [this] {
    replicated_.applied = true;
    replicator_->applied();
    commitReplicated();
  });
}

// Commits when both shards have the update: no caller sees the new parameters before.
void Updater::commitReplicated() {
  if (!replicated_.applied || !replicated_.received) return;
  const Replicated done = std::exchange(replicated_, {});
  commit(done.job, done.committed);
}

// ---- copies

void Updater::copySlots(std::function<void(std::vector<Buffer>)> copied) {
  DTF_CHECK(!copying_ && (!busy_ || launch_after_copy_ != nullptr));  // nothing runs
  const OutwardCalls::Scope scope(calls_);
  if (store_.slotCount() == 0) return copied({});
  const std::shared_ptr<optimizer::UpdateJob> job = store_.prepareCopy();
  if (runsInPlace()) {
    job->runAll();
    return copied(job->takeCopies());
  }
  copying_ = true;
  run(job, [this, job, copied = std::move(copied)] {
    copying_ = false;
    copied(job->takeCopies());
    if (copying_) return;  // another copy runs
    if (const auto launch = std::exchange(launch_after_copy_, nullptr)) launch();
  });
}

void Updater::callAfter(UpdateEnd end, std::function<void()> then) {
  if (end == UpdateEnd::kRunning && !busy_) return then();
  idle_waiters_.push_back(std::move(then));
}

}  // namespace dtf::replication
