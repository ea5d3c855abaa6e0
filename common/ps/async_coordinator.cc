#include "common/ps/async_coordinator.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/ps/membership.h"
#include "common/ps/replication_rules.h"

namespace dtf::ps {

namespace {

// A live process has one push under way; the others are of processes that were replaced meanwhile.
constexpr size_t kQueuedPerWorkerMax = 4;

std::string partsText(const std::vector<uint32_t>& awaited) {
  return "the rest of the epoch, which belongs to " + workerNames(awaited);
}

}  // namespace

AsyncCoordinator::AsyncCoordinator(const CoordinatorContext& context)
    : context_(context),
      staleness_(staleness(context.declaration.replication)),
      last_step_(context.declaration.steps),
      updater_(context.store, context.runner, context.calls, context.replicator),
      cut_(context.store, updater_, context.calls, context.clock),
      workers_(context.workers),
      parts_(context.declaration, context.workers, context.clock,
             {.step = context.step_timeout, .rejoin = context.rejoin_timeout}) {}

bool AsyncCoordinator::isDone() const {
  return leads() && context_.store.version() >= last_step_;
}

StepState AsyncCoordinator::stateOf(const Worker& worker, Outcome outcome,
                                    uint64_t staleness) const {
  StepState state;
  state.outcome = outcome;
  state.global_step = context_.store.version();
  state.next_step = worker.steps_pushed;
  state.done = isDone();
  state.staleness = staleness;
  state.loss = worker.last_loss;
  state.epoch = context_.epoch;
  state.progress = worker.counts ? worker.progress : 0;
  return state;
}

void AsyncCoordinator::answer(PushCallback callback, PushAnswer what) {
  context_.calls.add([callback = std::move(callback), what = std::move(what)] { callback(what); });
}

// Makes `callback` the worker's waiting call. One that waits already gives way: it is an earlier
// try.
void AsyncCoordinator::wait(uint32_t rank, bool is_push, PushCallback callback) {
  DTF_CHECK(rank < workers_.size() && callback != nullptr);
  if (workers_[rank].waiting) {
    cancelWaiting(rank,
                  Error(ErrorCode::kUnavailable,
                        fmt::format("{} asked ps/{} again; this call gave way to the newer one",
                                    workerName(rank), context_.ps_task)));
  }
  Worker& worker = workers_[rank];
  worker.waiting = std::move(callback);
  worker.waiting_is_push = is_push;
  worker.deadline = deadlineAfter(context_.clock.now(), context_.step_timeout);
}

void AsyncCoordinator::cancelWaiting(uint32_t rank, const Error& error) {
  Worker& worker = workers_[rank];
  if (worker.waiting) answer(std::move(worker.waiting), error);
  worker.waiting = nullptr;
  worker.awaits_grant = false;
  std::erase(grant_queue_, rank);
}

void AsyncCoordinator::pull(uint32_t rank, const Wanted& wanted, PushCallback callback) {
  const OutwardCalls::Scope scope(context_.calls);
  wait(rank, false, std::move(callback));
  parts_.pulled(rank);
  beginProgress(rank, wanted.progress);
  askForGrant(rank);
  settleHeld();
}

// A push that breaks the rules is answered with an Error.
bool AsyncCoordinator::refused(const Contribution& c, PushCallback& callback) {
  const Worker& worker = workers_[c.rank];
  std::string why;
  if (const auto fault =
          context_.store.gradientLayout().fault({c.gradient, nullptr, c.row_counts})) {
    why = *fault;
  } else if (c.batch != 0) {
    why = fmt::format("batch {}; async training has one batch a step", c.batch);
  } else if (leads() && c.step > worker.steps_pushed) {
    why = fmt::format("step {}, but its next step is {}", c.step, worker.steps_pushed);
  } else if (leads() && c.step == worker.steps_pushed && !worker.granted && !isDone()) {
    why = fmt::format("step {}, which was not granted to it; pull first", c.step);
  } else if (staleness_ && (c.progress == 0 || c.progress >= kProgressEnd - 1)) {
    why = "a step without its progress, which bounded training needs";
  } else if (queue_.size() >= workers_.size() * kQueuedPerWorkerMax) {
    why = fmt::format("a gradient while {} wait already, the most", queue_.size());
  } else {
    return false;
  }
  answer(std::move(callback),
         Error(ErrorCode::kBadData,
               fmt::format("{} pushed to ps/{} {}", workerName(c.rank), context_.ps_task, why)));
  return true;
}

// True for a push that has been seen, or that came after its step: it has no effect.
bool AsyncCoordinator::answeredAsRepeated(const Contribution& c, PushCallback& callback) {
  Worker& worker = workers_[c.rank];
  const bool same_process = worker.last_push && worker.last_push->incarnation == c.incarnation;
  if (same_process && worker.last_push->step == c.step) {
    ++counters_.gradients_repeated;
    if (worker.last_applied && !worker.counts) beginProgress(c.rank, c.progress + 1);
    if (worker.last_answer) {
      // With the parameters as they are now: others' pushes may be in them that the first answer
      // knew nothing of.
      worker.version_seen = worker.last_answer->global_step = context_.store.version();
      answer(std::move(callback), PushReply{*worker.last_answer, context_.store.current()});
      return true;
    }
    wait(c.rank, true, std::move(callback));
    if (worker.last_applied) askForGrant(c.rank);
    return true;
  }
  const bool past = c.step < worker.steps_pushed && (leads() || same_process);
  if (!past && !isDone()) return false;
  // A process pushes a step when the one before it is in: a second word of an earlier one.
  const bool repeated = past && same_process;
  ++(repeated ? counters_.gradients_repeated : counters_.gradients_stale);
  const Outcome outcome = repeated ? Outcome::kApplied : Outcome::kStale;
  answer(std::move(callback), PushReply{stateOf(worker, outcome, 0), context_.store.current()});
  return true;
}

void AsyncCoordinator::push(Contribution contribution, PushCallback callback) {
  const OutwardCalls::Scope scope(context_.calls);
  noteGrantShown(contribution);
  if (refused(contribution, callback)) return;
  if (answeredAsRepeated(contribution, callback)) return;
  if (isBeyondCut(contribution)) return park(std::move(contribution), std::move(callback));
  Worker& worker = workers_[contribution.rank];
  worker.last_push = PushName{contribution.incarnation, contribution.step};
  worker.last_loss = contribution.loss;
  worker.last_applied = false;
  worker.last_answer = std::nullopt;
  worker.steps_pushed = contribution.step + 1;
  parts_.pushed(contribution.rank, worker.steps_pushed);
  ++accepted_;
  if (leads()) {
    worker.granted = false;
    --granted_;
  }
  wait(contribution.rank, true, std::move(callback));
  queue_.push_back(std::move(contribution));
  applyNext();
}

void AsyncCoordinator::applyNext() {
  if (updater_.busy() || queue_.empty()) return;
  Contribution contribution = std::move(queue_.front());
  queue_.pop_front();
  const PushName name{contribution.incarnation, contribution.step};
  std::vector<Gradient> gradients;
  gradients.push_back(contribution.takeGradient());
  UpdateNote note{{}, contribution.loss};
  if (context_.replicator != nullptr)  // only a replica remembers it
    note.pushes.push_back({contribution.rank, contribution.incarnation, contribution.step,
                           progressAfter(contribution.rank, contribution.progress)});
  try {
    updater_.start(std::move(gradients), std::move(note),
                   [this, rank = contribution.rank, name, progress = contribution.progress] {
                     onApplied(rank, name, progress);
                     takeCutIfReached();
                     if (isDone()) settleAll();
                     applyNext();
                   });
  } catch (const Error& error) {  // of the device that keeps the parameters, which are lost
    failAll(error);
  }
}

void AsyncCoordinator::onApplied(uint32_t rank, const PushName& name, uint64_t progress) {
  Worker& worker = workers_[rank];
  DTF_CHECK(context_.store.version() > 0);  // something was applied
  const uint64_t before = context_.store.version() - 1;
  const uint64_t seen =
      context_.declaration.replication.overlap ? worker.version_before : worker.version_seen;
  const uint64_t staleness = before - std::min(before, seen);
  ++counters_.gradients_applied;
  counters_.staleness.add(staleness);
  // A newer process of the rank may have pushed meanwhile; then nobody waits for this one.
  if (worker.last_push != name) return;
  worker.last_applied = true;
  worker.last_staleness = staleness;
  // Not of a process that was replaced meanwhile: how far the new one is nobody knows yet.
  if (!worker.gone && name.incarnation == worker.process) advanceProgress(rank, progress);
  if (worker.waiting && worker.waiting_is_push) askForGrant(rank);
  settleHeld();
}

void AsyncCoordinator::joined(uint32_t rank, Incarnation incarnation) {
  const OutwardCalls::Scope scope(context_.calls);
  // Its grant, if it has one, passes to the new process.
  const Error fenced(
      ErrorCode::kUnavailable,
      fmt::format("fenced: {} was replaced by a newer process; end this one", workerName(rank)));
  unpark(rank, fenced);
  cancelWaiting(rank, fenced);
  Worker& worker = workers_[rank];
  worker.gone = false;
  worker.process = incarnation;
  parts_.joined(rank);
  // To a ps that was refilled a process may be new whose pushes are in its values.
  recallProgress(rank);
  settleHeld();
}

void AsyncCoordinator::finished(uint32_t rank) {
  const OutwardCalls::Scope scope(context_.calls);
  cancelWaiting(rank, Error(ErrorCode::kUnavailable, workerName(rank) + " has finished"));
  workers_[rank].gone = true;
  parts_.finished(rank);
  returnGrant(rank);
  countNoMore(rank);
  takeCutIfReached();
}

void AsyncCoordinator::lost(uint32_t rank, const std::string& why) {
  const OutwardCalls::Scope scope(context_.calls);
  const Error fenced(ErrorCode::kUnavailable, "fenced: " + why);
  unpark(rank, fenced);
  cancelWaiting(rank, fenced);
  workers_[rank].gone = true;
  parts_.lost(rank);
  returnGrant(rank);
  countNoMore(rank);
  takeCutIfReached();  // what the lost worker had not pushed everywhere will not come
}

// ---- checkpoints

CutPosition AsyncCoordinator::taken() const {
  CutPosition position;
  for (const Worker& worker : workers_) position.push_back(worker.steps_pushed);
  return position;
}

CutPosition AsyncCoordinator::position(bool hold) {
  if (hold) {
    holding_ = true;
    hold_until_ = deadlineAfter(context_.clock.now(), kHoldMax);
  }
  return taken();
}

bool AsyncCoordinator::isBeyondCut(const Contribution& c) const {
  if (!holding_) return false;
  return c.step >= (cut_.armed() ? cut_.target()[c.rank] : workers_[c.rank].steps_pushed);
}

void AsyncCoordinator::park(Contribution contribution, PushCallback callback) {
  DTF_CHECK(holding_ && callback != nullptr);
  unpark(contribution.rank,
         Error(ErrorCode::kUnavailable, workerName(contribution.rank) +
                                            " asked again; this call gave way to the newer one"));
  parked_.push_back({std::move(contribution), std::move(callback)});
}

void AsyncCoordinator::unpark(uint32_t rank, const Error& error) {
  std::erase_if(parked_, [&](Parked& parked) {
    if (parked.contribution.rank != rank) return false;
    answer(std::move(parked.callback), error);
    return true;
  });
}

void AsyncCoordinator::releaseHold() {
  const OutwardCalls::Scope scope(context_.calls);
  // What is not held back may pass a cut that still waits: that would be captured
  // beyond it, much later.
  cut_.answer(Error(ErrorCode::kUnavailable,
                    fmt::format("the checkpoint on ps/{} was called off", context_.ps_task)));
  holding_ = false;
  for (Parked& parked : std::exchange(parked_, {}))
    push(std::move(parked.contribution), std::move(parked.callback));
}

void AsyncCoordinator::cutAt(CutPosition target, CutCallback callback) {
  const OutwardCalls::Scope scope(context_.calls);
  const CutPosition now = taken();
  const bool sane = target.size() == workers_.size();
  bool too_late = false;
  for (size_t rank = 0; sane && rank < now.size(); ++rank) too_late |= now[rank] > target[rank];
  cut_.arm(std::move(target), kHoldMax, std::move(callback));
  if (!sane) {
    cut_.answer(
        Error(ErrorCode::kBadData,
              fmt::format("ps/{} got a request for a checkpoint of {} workers, but the job has {}",
                          context_.ps_task, cut_.target().size(), workers_.size())));
  } else if (too_late) {
    cut_.answer(CutResult{});
  }
  if (!cut_.armed()) return releaseHold();
  holding_ = true;
  hold_until_ = deadlineAfter(context_.clock.now(), kHoldMax);
  // What was parked before the target was known may belong before it.
  for (Parked& parked : std::exchange(parked_, {}))
    push(std::move(parked.contribution), std::move(parked.callback));
  takeCutIfReached();
}

void AsyncCoordinator::takeCutIfReached() {
  if (!cut_.armed() || updater_.busy() || !queue_.empty()) return;
  for (size_t rank = 0; rank < workers_.size(); ++rank) {
    const bool missing = workers_[rank].steps_pushed < cut_.target()[rank];
    if (missing && !workers_[rank].gone) return;
  }
  cut_.take();
  releaseHold();
}

void AsyncCoordinator::restore(const CutPosition& position) {
  DTF_CHECK(position.size() == workers_.size());
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    workers_[rank].steps_pushed = position[rank];
    parts_.pushed(rank, position[rank]);
  }
  accepted_ = context_.store.version();
}

void AsyncCoordinator::requestStop(bool at_rest) {
  const OutwardCalls::Scope scope(context_.calls);
  DTF_CHECK(!at_rest || granted_ == 0);
  last_step_ = std::min(last_step_, accepted_ + granted_ + grantsOfBefore());
  settleAll();
}

// What a call waits for, in words that follow "has waited".
std::string AsyncCoordinator::waitingForText(uint32_t rank) const {
  const Worker& worker = workers_[rank];
  if (!worker.awaits_grant) return "its gradient to be applied";
  if (leads() && parts_.mustWait(rank)) return partsText(parts_.awaited());
  if (mustWait(worker)) {
    std::vector<uint32_t> behind;
    for (uint32_t other = 0; other < workers_.size(); ++other)
      if (workers_[other].counts && workers_[other].progress + *staleness_ < worker.progress)
        behind.push_back(other);
    return fmt::format(
        "{}, more than {} step{} behind; a larger replication.staleness or timeouts.step_seconds "
        "gives it more time",
        workerNames(behind), *staleness_, *staleness_ == 1 ? "" : "s");
  }
  std::vector<uint32_t> holders;
  for (uint32_t other = 0; other < workers_.size(); ++other)
    if (workers_[other].granted || workers_[other].may_hold_grant) holders.push_back(other);
  return "the last steps, which were granted to " + workerNames(holders);
}

std::string AsyncCoordinator::awaitedText() const {
  if (awaitsReturn()) return partsText(parts_.awaited());
  const TimePoint now = context_.clock.now();
  for (uint32_t rank = 0; rank < workers_.size(); ++rank)
    if (workers_[rank].waiting && hasWaited(workers_[rank].deadline, now, context_.step_timeout))
      return waitingForText(rank);
  return "";
}

// Not that of a hold, which keeps others from training.
void AsyncCoordinator::extendDeadlines() {
  const TimePoint later = deadlineAfter(context_.clock.now(), context_.step_timeout);
  extendCalls(workers_, later);
}

void AsyncCoordinator::failAll(const Error& error) {
  const OutwardCalls::Scope scope(context_.calls);
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    unpark(rank, error);
    cancelWaiting(rank, error);
  }
  cut_.answer(error);
}

std::vector<Coordinator::Stranded> AsyncCoordinator::takeWaiting() {
  const OutwardCalls::Scope scope(context_.calls);
  std::vector<Stranded> stranded = takeCalls(workers_);
  for (Parked& parked : std::exchange(parked_, {}))
    stranded.push_back({parked.contribution.rank, std::move(parked.callback)});
  cut_.answer(wentBackDuringCut(context_.ps_task));
  return stranded;
}

void AsyncCoordinator::tick() {
  const OutwardCalls::Scope scope(context_.calls);
  if (holding_ && context_.clock.now() >= hold_until_) {
    cut_.answer(Error(ErrorCode::kDeadline,
                      fmt::format("ps/{} has waited {} for the gradients before a checkpoint; "
                                  "training goes on without it",
                                  context_.ps_task, secondsText(kHoldMax))));
    releaseHold();
  }
  const TimePoint now = context_.clock.now();
  // Who has grants of before has not used them for so long that others need not wait for that.
  if (now >= grants_of_before_until_)
    for (Worker& worker : workers_) worker.may_hold_grant = false;
  findSlowest();  // a worker that did not return in time is awaited no longer for its part
  settleAll();
  if (awaitsReturn())
    for (const uint32_t rank : grant_queue_)
      if (parts_.mustWait(rank))
        workers_[rank].deadline = deadlineAfter(now, context_.step_timeout);
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (!workers_[rank].waiting || now < workers_[rank].deadline) continue;
    cancelWaiting(rank, Error(ErrorCode::kDeadline,
                              fmt::format("{} has waited {} on ps/{} for {}", workerName(rank),
                                          secondsText(context_.step_timeout), context_.ps_task,
                                          waitingForText(rank))));
  }
}

void AsyncCoordinator::onReceived(uint32_t ps_task, uint64_t, uint32_t) {
  throw Error(ErrorCode::kBadData,
              fmt::format("ps/{} reported a gradient to ps/{}, which trains asynchronously",
                          ps_task, context_.ps_task));
}

void AsyncCoordinator::onDecision(uint64_t step, const std::vector<uint32_t>&) {
  throw Error(ErrorCode::kBadData,
              fmt::format("ps/{} received a decision for step {}, but it trains asynchronously",
                          context_.ps_task, step));
}

CoordinatorStatus AsyncCoordinator::status() const {
  CoordinatorStatus status = counters_;
  status.global_step = context_.store.version();
  status.done = isDone();
  status.callers_waiting = countCalls(workers_);
  return status;
}

}  // namespace dtf::ps
