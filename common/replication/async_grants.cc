// Second part of AsyncCoordinator: which worker may compute a step, also after a refill from the
// replica.

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/replication/async_coordinator.h"
#include "common/replication/membership.h"

namespace dtf::replication {

namespace {

// Logs the workers whose return is no longer awaited: the others do their steps, with their own
// examples.
void warnOfGivenUp(StepParts& parts) {
  for (const uint32_t rank : parts.takeGivenUp())
    log::warning(
        "event=part_given_up worker={} reason=\"it did not return in time: the others do its "
        "steps, "
        "with their own examples\"",
        workerName(rank));
}

}  // namespace

uint64_t AsyncCoordinator::grantsOfBefore() const {
  return static_cast<uint64_t>(std::count_if(workers_.begin(), workers_.end(),
                                             [](const Worker& w) { return w.may_hold_grant; }));
}

// Returns the steps left to grant. A grant that another worker may hold from before a refill is
// reserved for it.
uint64_t AsyncCoordinator::stepsLeftFor(const Worker& worker) const {
  const uint64_t of_others = grantsOfBefore() - (worker.may_hold_grant ? 1 : 0);
  const uint64_t taken = accepted_ + granted_ + of_others;
  return last_step_ - std::min(last_step_, taken);
}

// A worker that asks holds no grant from before a refill: the answer with it, if any, was lost.
void AsyncCoordinator::askForGrant(uint32_t rank) {
  Worker& worker = workers_[rank];
  const bool may_have_held = std::exchange(worker.may_hold_grant, false);
  worker.awaits_grant = true;
  grant_queue_.push_back(rank);
  settle(rank);
  if (may_have_held) settleAll();
}

// Answers the worker's waiting call, unless it must wait for a grant or for other workers.
void AsyncCoordinator::settle(uint32_t rank) {
  Worker& worker = workers_[rank];
  const auto* call = waiting_.find(rank);
  DTF_CHECK(call != nullptr && worker.awaits_grant);
  if (!worker.granted && isTooFarAhead(rank)) return;
  if (leads() && !worker.granted && !isDone()) {
    if (stepsLeftFor(worker) == 0 || parts_.mustWait(rank)) return;
    warnOfGivenUp(parts_);
    worker.granted = true;
    ++granted_;
  }
  const bool is_push = call->detail.is_push;
  const StepState state = stateOf(rank, Outcome::kApplied, is_push ? worker.last_staleness : 0);
  if (is_push) worker.last_answer = state;
  worker.version_before = is_push ? worker.version_seen : context_.store.version();
  worker.version_seen = context_.store.version();
  waiting_.answer(rank, PushReply{state, context_.store.current()});
  askNoMore(rank);
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

// Calls that wait for the parts of others have no deadline while these make headway.
bool AsyncCoordinator::awaitsReturn() const {
  if (!leads() || !parts_.makeHeadway()) return false;
  const auto waits = [this](uint32_t rank) { return parts_.mustWait(rank); };
  // No call waits before there are values, and isDone() reads their version.
  return std::ranges::any_of(grant_queue_, waits) && !isDone();
}

// ---- bounded training

// Nobody waits at the job's end.
bool AsyncCoordinator::isTooFarAhead(uint32_t rank) const {
  return bound_.mustWait(rank) && !isDone();
}

// Answers calls that waited for a worker that has pushed since, or has done its part.
void AsyncCoordinator::settleHeld() {
  if (!bound_.exists() && !parts_.exist()) return;
  if (!grant_queue_.empty()) settleAll();
}

// ---- after a refill

PushMemory AsyncCoordinator::memory() const {
  DTF_CHECK(queue_.empty() && !updater_.busy());
  PushMemory memory;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    const Worker& worker = workers_[rank];
    const Incarnation last = worker.last_push ? worker.last_push->incarnation : Incarnation{};
    memory.workers.push_back({last, worker.steps_pushed, 0, worker.last_loss, bound_.clock(rank)});
  }
  return memory;
}

// The replica lacks the grants of the earlier process that were not used yet. Each worker may hold
// one such grant: a push of it shows that it does, a pull that it doesn't. A worker that asks gets
// a step that is not reserved for the others.
void AsyncCoordinator::resume(const PushMemory& memory) {
  DTF_CHECK(memory.workers.size() == workers_.size() && accepted_ == 0 && queue_.empty());
  accepted_ = context_.store.version();
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    const PushMemory::Worker& known = memory.workers[rank];
    Worker& worker = workers_[rank];
    worker.steps_pushed = known.steps;
    parts_.pushed(rank, known.steps);
    worker.last_loss = known.loss;
    bound_.remember(rank, known.progress);
    worker.version_seen = worker.version_before = accepted_;
    if (known.incarnation.value != 0 && known.steps > 0) {
      worker.last_push = PushName{known.incarnation, known.steps - 1};
      worker.last_applied = true;
    }
    worker.may_hold_grant = leads() && !isDone() && !worker.gone;
  }
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) recallClock(rank);
  resumed_ = leads();
  grants_of_before_until_ = deadlineAfter(context_.clock.now(), context_.rejoin_timeout);
}

void AsyncCoordinator::recallClock(uint32_t rank) {
  const Worker& worker = workers_[rank];
  const bool pushed_last = worker.last_push && worker.last_push->incarnation == worker.process;
  bound_.recall(rank, pushed_last && !worker.gone);
}

void AsyncCoordinator::noteGrantShown(const Contribution& c) {
  Worker& worker = workers_[c.rank];
  if (!resumed_ || worker.granted || c.step != worker.steps_pushed || isDone()) return;
  // The push may come after the reservation has ended: then its step may have been granted to
  // another worker.
  if (!worker.may_hold_grant && stepsLeftFor(worker) == 0) return;
  worker.may_hold_grant = false;
  worker.granted = true;
  ++granted_;
}

}  // namespace dtf::replication
