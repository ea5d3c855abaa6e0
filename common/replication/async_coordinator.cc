#include "common/replication/async_coordinator.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/replication/membership.h"
#include "common/replication/replication_rules.h"

namespace dtf::replication {

namespace {

// A live process has one push under way; the others are from processes that were replaced.
constexpr size_t kQueuedPerWorkerMax = 4;

std::string partsText(const std::vector<uint32_t>& awaited) {
  return "the rest of the epoch, which belongs to " + workerNames(awaited);
}

}  // namespace

AsyncCoordinator::AsyncCoordinator(const CoordinatorContext& context)
    : context_(context),
      last_step_(context.declaration.steps),
      updater_(context.store, context.runner, context.calls, context.replicator),
      cut_(context.store, updater_, context.calls, context.clock),
      parked_(context.calls, context.clock),
      waiting_(context.calls, context.clock),
      workers_(context.workers),
      parts_(context.declaration, context.workers, context.clock,
             {.step = context.step_timeout, .rejoin = context.rejoin_timeout}),
      bound_(staleness(context.declaration.replication), context.workers, context.ps_task == 0,
             [this](uint32_t rank) { return parts_.rests(rank); }) {}

bool AsyncCoordinator::isDone() const {
  return leads() && context_.store.version() >= last_step_;
}

StepState AsyncCoordinator::stateOf(uint32_t rank, Outcome outcome, uint64_t staleness) const {
  const Worker& worker = workers_[rank];
  StepState state;
  state.outcome = outcome;
  state.global_step = context_.store.version();
  state.next_step = worker.steps_pushed;
  state.done = isDone();
  state.staleness = staleness;
  state.loss = worker.last_loss;
  state.epoch = context_.epoch;
  state.progress = bound_.counts(rank) ? bound_.clock(rank) : 0;
  return state;
}

void AsyncCoordinator::answer(PushCallback callback, PushAnswer what) {
  context_.calls.add([callback = std::move(callback), what = std::move(what)] { callback(what); });
}

// Makes `callback` the worker's waiting call; an earlier try that still waits gives way.
void AsyncCoordinator::wait(uint32_t rank, bool is_push, PushCallback callback) {
  DTF_CHECK(rank < workers_.size());
  askNoMore(rank);
  waiting_.add(rank, context_.step_timeout, std::move(callback), gaveWay(rank, context_.host()),
               {is_push});
}

void AsyncCoordinator::askNoMore(uint32_t rank) {
  workers_[rank].awaits_grant = false;
  std::erase(grant_queue_, rank);
}

// Answers the worker's calls.
void AsyncCoordinator::dropCalls(uint32_t rank, const Error& error) {
  parked_.answer(rank, error);
  waiting_.answer(rank, error);
  askNoMore(rank);
}

void AsyncCoordinator::pull(uint32_t rank, const Wanted& wanted, PushCallback callback) {
  const OutwardCalls::Scope scope(context_.calls);
  wait(rank, false, std::move(callback));
  parts_.pulled(rank);
  bound_.begin(rank, wanted.progress);
  askForGrant(rank);
  settleHeld();
}

// Answers a push that breaks the rules with an Error, and returns true.
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
  } else if (!bound_.isSane(c.progress)) {
    why = "a step without its progress, which bounded training needs";
  } else if (queue_.size() >= workers_.size() * kQueuedPerWorkerMax) {
    why = fmt::format("a gradient while {} wait already, the most", queue_.size());
  } else {
    return false;
  }
  answer(std::move(callback),
         Error(ErrorCode::kBadData,
               fmt::format("{} pushed to {} {}", workerName(c.rank), context_.host().name(), why)));
  return true;
}

// Answers a push that was seen before, or that came after its step, and returns true. It has no
// effect.
bool AsyncCoordinator::answeredAsRepeated(const Contribution& c, PushCallback& callback) {
  Worker& worker = workers_[c.rank];
  const bool same_process = worker.last_push && worker.last_push->incarnation == c.incarnation;
  if (same_process && worker.last_push->step == c.step) {
    ++counters_.gradients_repeated;
    if (worker.last_applied && !bound_.counts(c.rank)) bound_.begin(c.rank, c.progress + 1);
    if (worker.last_answer) {
      // The current parameters may contain pushes of others that came after the first answer.
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
  // A process pushes a step when the one before it is in: this repeats an earlier push.
  const bool repeated = past && same_process;
  ++(repeated ? counters_.gradients_repeated : counters_.gradients_stale);
  const Outcome outcome = repeated ? Outcome::kApplied : Outcome::kStale;
  answer(std::move(callback), PushReply{stateOf(c.rank, outcome, 0), context_.store.current()});
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
  std::vector<arena::Gradient> gradients;
  gradients.push_back(contribution.takeGradient());
  UpdateNote note{{}, contribution.loss};
  if (context_.replicator != nullptr)  // only a replica remembers it
    note.pushes.push_back({contribution.rank, contribution.incarnation, contribution.step,
                           bound_.after(contribution.rank, contribution.progress)});
  try {
    updater_.start(std::move(gradients), std::move(note),
                   [this, rank = contribution.rank, name, progress = contribution.progress] {
                     onApplied(rank, name, progress);
                     takeCutIfReached();
                     if (isDone()) settleAll();
                     applyNext();
                   });
  } catch (const Error& error) {  // the device failed: its parameters are lost
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
  // A newer process of the rank may have pushed meanwhile; then no call waits for this push.
  if (worker.last_push != name) return;
  worker.last_applied = true;
  worker.last_staleness = staleness;
  // The clock of a process that replaced this one is not known yet.
  if (!worker.gone && name.incarnation == worker.process) bound_.advance(rank, progress);
  if (const auto* call = waiting_.find(rank); call && call->detail.is_push) askForGrant(rank);
  settleHeld();
}

void AsyncCoordinator::joined(uint32_t rank, Incarnation incarnation) {
  const OutwardCalls::Scope scope(context_.calls);
  // Its grant, if it has one, passes to the new process.
  const Error fenced(
      ErrorCode::kUnavailable,
      fmt::format("fenced: {} was replaced by a newer process; end this one", workerName(rank)));
  dropCalls(rank, fenced);
  Worker& worker = workers_[rank];
  worker.gone = false;
  worker.process = incarnation;
  parts_.joined(rank);
  // A refilled ps may hold pushes of a process that joins it for the first time.
  recallClock(rank);
  settleHeld();
}

void AsyncCoordinator::finished(uint32_t rank) {
  const OutwardCalls::Scope scope(context_.calls);
  waiting_.answer(rank, Error(ErrorCode::kUnavailable, workerName(rank) + " has finished"));
  askNoMore(rank);
  workers_[rank].gone = true;
  parts_.finished(rank);
  returnGrant(rank);
  bound_.countNoMore(rank);
  settleHeld();
  takeCutIfReached();
}

void AsyncCoordinator::lost(uint32_t rank, const std::string& why) {
  const OutwardCalls::Scope scope(context_.calls);
  dropCalls(rank, Error(ErrorCode::kUnavailable, "fenced: " + why));
  workers_[rank].gone = true;
  parts_.lost(rank);
  returnGrant(rank);
  bound_.countNoMore(rank);
  settleHeld();
  takeCutIfReached();  // the lost worker's missing pushes will not come
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
  DTF_CHECK(holding_);
  const uint32_t rank = contribution.rank;
  parked_.add(rank, Duration::max(), std::move(callback), gaveWay(rank, context_.host()),
              std::move(contribution));
}

void AsyncCoordinator::releaseHold() {
  const OutwardCalls::Scope scope(context_.calls);
  // A push released now may pass a cut that still waits, and the capture would be beyond the cut.
  cut_.answer(Error(ErrorCode::kUnavailable,
                    fmt::format("the checkpoint on {} was called off", context_.host().name())));
  holding_ = false;
  for (auto& parked : parked_.takeAll()) push(std::move(parked.detail), std::move(parked.callback));
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
              fmt::format("{} got a request for a checkpoint of {} workers, but the job has {}",
                          context_.host().name(), cut_.target().size(), workers_.size())));
  } else if (too_late) {
    cut_.answer(CutResult{});
  }
  if (!cut_.armed()) return releaseHold();
  holding_ = true;
  hold_until_ = deadlineAfter(context_.clock.now(), kHoldMax);
  // A push that was parked before the target was known may belong before the cut.
  for (auto& parked : parked_.takeAll()) push(std::move(parked.detail), std::move(parked.callback));
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

void AsyncCoordinator::requestStop() {
  const OutwardCalls::Scope scope(context_.calls);
  last_step_ = std::min(last_step_, accepted_ + granted_ + grantsOfBefore());
  settleAll();
}

// Returns the reason of a wait, to follow "has waited ... for".
std::string AsyncCoordinator::waitingForText(uint32_t rank) const {
  if (!workers_[rank].awaits_grant) return "its gradient to be applied";
  if (leads() && parts_.mustWait(rank)) return partsText(parts_.awaited());
  if (isTooFarAhead(rank)) {
    return fmt::format(
        "{}, more than {} step{} behind; a larger replication.staleness or timeouts.step_seconds "
        "gives it more time",
        workerNames(bound_.behind(rank)), bound_.staleness(), bound_.staleness() == 1 ? "" : "s");
  }
  std::vector<uint32_t> holders;
  for (uint32_t other = 0; other < workers_.size(); ++other)
    if (workers_[other].granted || workers_[other].may_hold_grant) holders.push_back(other);
  return "the last steps, which were granted to " + workerNames(holders);
}

std::string AsyncCoordinator::awaitedText() const {
  if (awaitsReturn()) return partsText(parts_.awaited());
  const auto* call = waiting_.longWait();
  return call == nullptr ? "" : waitingForText(call->rank);
}

// Doesn't extend a hold, which keeps others from training.
void AsyncCoordinator::extendDeadlines() {
  waiting_.restart();
}

void AsyncCoordinator::failAll(const Error& error) {
  const OutwardCalls::Scope scope(context_.calls);
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) dropCalls(rank, error);
  cut_.answer(error);
}

std::vector<Coordinator::Stranded> AsyncCoordinator::takeWaiting() {
  const OutwardCalls::Scope scope(context_.calls);
  std::vector<Stranded> stranded;
  strand(waiting_, stranded);
  strand(parked_, stranded);
  cut_.answer(wentBackDuringCut(context_.host()));
  return stranded;
}

void AsyncCoordinator::tick() {
  const OutwardCalls::Scope scope(context_.calls);
  if (holding_ && context_.clock.now() >= hold_until_) {
    cut_.answer(Error(ErrorCode::kDeadline,
                      fmt::format("{} has waited {} for the gradients before a checkpoint; "
                                  "training goes on without it",
                                  context_.host().name(), secondsText(kHoldMax))));
    releaseHold();
  }
  const TimePoint now = context_.clock.now();
  // Grants from before a refill that were not used for so long are no longer reserved.
  if (now >= grants_of_before_until_)
    for (Worker& worker : workers_) worker.may_hold_grant = false;
  bound_.findSlowest();  // a worker that did not return in time is no longer awaited for its part
  settleAll();
  if (awaitsReturn())
    for (const uint32_t rank : grant_queue_)
      if (parts_.mustWait(rank)) waiting_.restart(rank);
  waiting_.expire([this](const WaitingCalls<PushAnswer, Wait>::Call& call) {
    const Error error(
        ErrorCode::kDeadline,
        fmt::format("{} has waited {} on {} for {}", workerName(call.rank),
                    secondsText(call.timeout), context_.host().name(), waitingForText(call.rank)));
    askNoMore(call.rank);
    return error;
  });
}

void AsyncCoordinator::onReceived(uint32_t ps_task, uint64_t, uint32_t) {
  throw Error(ErrorCode::kBadData,
              fmt::format("{} reported a gradient to {}, which trains asynchronously",
                          context_.hosts.of(ps_task).name(), context_.host().name()));
}

void AsyncCoordinator::onDecision(uint64_t step, const std::vector<uint32_t>&) {
  throw Error(ErrorCode::kBadData,
              fmt::format("{} received a decision for step {}, but it trains asynchronously",
                          context_.host().name(), step));
}

CoordinatorStatus AsyncCoordinator::status() const {
  CoordinatorStatus status = counters_;
  status.global_step = context_.store.version();
  status.done = isDone();
  status.callers_waiting = waiting_.size();
  return status;
}

}  // namespace dtf::replication
