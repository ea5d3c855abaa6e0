// AsyncCoordinator, second part: who may compute a step, how far ahead of the others, and what a
// shard that was filled from its replica knows of that.

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/ps/async_coordinator.h"

namespace dtf::ps {

uint64_t AsyncCoordinator::grantsOfBefore() const {
  return static_cast<uint64_t>(std::count_if(workers_.begin(), workers_.end(),
                                             [](const Worker& w) { return w.may_hold_grant; }));
}

// What others may hold of before may be no grants at all: they count until that is known.
uint64_t AsyncCoordinator::stepsLeftFor(const Worker& worker) const {
  const uint64_t of_others = grantsOfBefore() - (worker.may_hold_grant ? 1 : 0);
  const uint64_t taken = accepted_ + granted_ + of_others;
  return last_step_ - std::min(last_step_, taken);
}

// Who asks has no grant of before: what was answered to it, if anything, it has not heard.
void AsyncCoordinator::askForGrant(uint32_t rank) {
  Worker& worker = workers_[rank];
  const bool may_have_held = std::exchange(worker.may_hold_grant, false);
  worker.awaits_grant = true;
  grant_queue_.push_back(rank);
  settle(rank);
  if (may_have_held) settleAll();
}

// Answers the worker's waiting call if there is something for it to do, or nothing ever again.
void AsyncCoordinator::settle(uint32_t rank) {
  Worker& worker = workers_[rank];
  DTF_CHECK(worker.waiting != nullptr && worker.awaits_grant);
  if (!worker.granted && mustWait(worker)) return;
  if (leads() && !worker.granted && !isDone()) {
    if (stepsLeftFor(worker) == 0 || parts_.mustWait(rank)) return;
    worker.granted = true;
    ++granted_;
  }
  const StepState state =
      stateOf(worker, Outcome::kApplied, worker.waiting_is_push ? worker.last_staleness : 0);
  if (worker.waiting_is_push) worker.last_answer = state;
  worker.version_before = worker.waiting_is_push ? worker.version_seen : context_.store.version();
  worker.version_seen = context_.store.version();
  answer(std::move(worker.waiting), PushReply{state, context_.store.current()});
  worker.waiting = nullptr;
  worker.awaits_grant = false;
  std::erase(grant_queue_, rank);
}

void AsyncCoordinator::settleAll() {
  const std::deque<uint32_t> asking = grant_queue_;
  for (const uint32_t rank : asking) settle(rank);
}

void AsyncCoordinator::returnGrant(uint32_t rank) {
  const bool may_have_held = std::exchange(workers_[rank].may_hold_grant, false);
  if (!workers_[rank].granted && !may_have_held) return;
  if (workers_[rank].granted) --granted_;
  workers_[rank].granted = false;
  settleAll();
}

// Whoever waits for the parts of others has no deadline while these make headway.
bool AsyncCoordinator::awaitsReturn() const {
  if (!leads() || !parts_.makeHeadway()) return false;
  const auto waits = [this](uint32_t rank) { return parts_.mustWait(rank); };
  // Nobody asks before there are values, whose version says whether the job is done.
  return std::ranges::any_of(grant_queue_, waits) && !isDone();
}

// ---- bounded training

// Of those that count none is further than staleness + 1 ahead, so the furthest was near the others
// when it was lost.
uint64_t AsyncCoordinator::firstProgress() const {
  if (slowest_ != kProgressEnd) return slowest_;
  uint64_t furthest = kProgressFirst;
  for (const Worker& worker : workers_) furthest = std::max(furthest, worker.progress);
  return furthest;
}

// A worker that doesn't count asks ps/0 how far it is, or has `told` another ps; 0: not yet.
void AsyncCoordinator::beginProgress(uint32_t rank, uint64_t told) {
  Worker& worker = workers_[rank];
  if (!staleness_ || (leads() ? worker.counts : told == 0)) return;
  worker.progress = leads() ? firstProgress() : told;
  worker.counts = true;
  findSlowest();
}

// Once a push is in that was `told` to be of that progress. ps/0 knows better: of a worker that it
// didn't count it takes the push for the last that was missing, so that nobody is held who might be
// waited for elsewhere.
uint64_t AsyncCoordinator::progressAfter(uint32_t rank, uint64_t told) const {
  if (!staleness_) return 0;
  if (!leads()) return told + 1;
  return workers_[rank].counts ? workers_[rank].progress + 1 : firstProgress();
}

void AsyncCoordinator::advanceProgress(uint32_t rank, uint64_t told) {
  if (!staleness_) return;
  workers_[rank].progress = progressAfter(rank, told);
  workers_[rank].counts = true;
  findSlowest();
}

bool AsyncCoordinator::mustWait(const Worker& worker) const {
  return staleness_ && worker.counts && worker.progress != kProgressEnd && !isDone() &&
         worker.progress > slowest_ && worker.progress - slowest_ > *staleness_;
}

void AsyncCoordinator::countNoMore(uint32_t rank) {
  workers_[rank].counts = false;
  findSlowest();
  settleHeld();
}

void AsyncCoordinator::findSlowest() {
  slowest_ = kProgressEnd;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank)
    if (workers_[rank].counts && !parts_.mustWait(rank))
      slowest_ = std::min(slowest_, workers_[rank].progress);
}

// Answers the calls that waited for a worker that is further now, or has done its part.
void AsyncCoordinator::settleHeld() {
  if (!staleness_ && !parts_.exist()) return;
  if (!grant_queue_.empty()) settleAll();
}

// ---- after a refill

PushMemory AsyncCoordinator::memory() const {
  DTF_CHECK(queue_.empty() && !updater_.busy());
  PushMemory memory;
  for (const Worker& worker : workers_) {
    const Incarnation last = worker.last_push ? worker.last_push->incarnation : Incarnation{};
    memory.workers.push_back({last, worker.steps_pushed, 0, worker.last_loss, worker.progress});
  }
  return memory;
}

// Which steps the process before has granted and not seen pushed, its replica doesn't know. Each
// worker may hold one: it shows it by its push, or that it holds none by asking. One that asks gets
// what is left besides those that others may hold.
void AsyncCoordinator::resume(const PushMemory& memory) {
  DTF_CHECK(memory.workers.size() == workers_.size() && accepted_ == 0 && queue_.empty());
  accepted_ = context_.store.version();
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    const PushMemory::Worker& known = memory.workers[rank];
    Worker& worker = workers_[rank];
    worker.steps_pushed = known.steps;
    parts_.pushed(static_cast<uint32_t>(rank), known.steps);
    worker.last_loss = known.loss;
    worker.progress = known.progress;
    worker.version_seen = worker.version_before = accepted_;
    if (known.incarnation.value != 0 && known.steps > 0) {
      worker.last_push = PushName{known.incarnation, known.steps - 1};
      worker.last_applied = true;
    }
    worker.may_hold_grant = leads() && !isDone() && !worker.gone;
  }
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) recallProgress(rank);
  resumed_ = leads();
  grants_of_before_until_ = deadlineAfter(context_.clock.now(), context_.rejoin_timeout);
}

// Whether a worker of whom the replica knows counts again. Who is far behind was lost long before.
// Others than ps/0 wait for its word, for they may have heard that it was told of the job's end.
void AsyncCoordinator::recallProgress(uint32_t rank) {
  if (!staleness_) return;
  Worker& worker = workers_[rank];
  uint64_t furthest = 0;
  for (const Worker& each : workers_) furthest = std::max(furthest, each.progress);
  const bool is_here = worker.last_push && worker.last_push->incarnation == worker.process;
  worker.counts = leads() && is_here && !worker.gone && worker.progress > 0 &&
                  furthest - worker.progress <= *staleness_ + 1;
  findSlowest();
}

void AsyncCoordinator::noteGrantShown(const Contribution& c) {
  Worker& worker = workers_[c.rank];
  if (!resumed_ || worker.granted || c.step != worker.steps_pushed || isDone()) return;
  // It may have been long about that step: then it shows a grant that was not reckoned with any
  // more.
  if (!worker.may_hold_grant && stepsLeftFor(worker) == 0) return;
  worker.may_hold_grant = false;
  worker.granted = true;
  ++granted_;
}

}  // namespace dtf::ps
