#include "common/replication/sync_coordinator.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/replication/membership.h"
#include "common/replication/replication_rules.h"

namespace dtf::replication {

bool SyncCoordinator::Worker::complete() const {
  return std::all_of(batches.begin(), batches.end(), [](const auto& b) { return b.has_value(); });
}

uint32_t SyncCoordinator::Worker::firstMissing() const {
  const auto missing =
      std::find_if(batches.begin(), batches.end(), [](const auto& b) { return !b.has_value(); });
  return static_cast<uint32_t>(missing - batches.begin());
}

SyncCoordinator::SyncCoordinator(const CoordinatorContext& context)
    : context_(context),
      needed_(context.declaration.replication.replicas_to_aggregate),
      shares_(context.declaration, context.workers),
      last_step_(context.declaration.steps),
      updater_(context.store, context.runner, context.calls, context.replicator),
      cut_(context.store, updater_, context.calls, context.clock),
      waiting_(context.calls, context.clock),
      workers_(context.workers),
      gone_(context.workers, std::min(needed_, context.workers), context.clock),
      decider_(context.ps_tasks, context.workers) {
  DTF_CHECK(context.declaration.replication.total_num_replicas == context.workers && needed_ > 0);
  DTF_CHECK(!hasBackups() || context.ps_tasks == 1 || context.peers != nullptr);
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    const cluster::ReplicationSpec& replication = context.declaration.replication;
    workers_[rank].pusher = &workers_.at(pusherOf(replication, rank));
    if (pusherOf(replication, rank) != rank) continue;  // its gradient comes with another's
    workers_[rank].batches.resize(batchesPerStep(replication, rank));
    workers_[rank].losses.resize(workers_[rank].batches.size());
    pushes_ += hasBackups() ? 0 : workers_[rank].batches.size();
  }
}

// ---- answers

StepState SyncCoordinator::stateNow(uint32_t rank, Outcome outcome) const {
  const Worker& worker = workers_[rank];
  StepState state;
  state.outcome = outcome;
  state.global_step = step();
  state.next_step = step();
  // When all batches of a restarted worker are held already, it repeats the last one and waits with
  // it.
  state.next_batch = std::min(worker.firstMissing(), worker.lastBatch());
  state.done = isDone();
  state.loss = last_loss_;
  state.epoch = context_.epoch;
  return state;
}

StepState SyncCoordinator::queuedState(uint64_t of_step, uint32_t batch) const {
  StepState state;
  state.outcome = Outcome::kQueued;
  state.global_step = of_step;
  state.next_step = of_step;
  state.next_batch = batch + 1;
  state.epoch = context_.epoch;
  return state;
}

void SyncCoordinator::answer(PushCallback callback, PushAnswer what) {
  has_sent_ = has_sent_ || std::holds_alternative<PushReply>(what);
  context_.calls.add([callback = std::move(callback), what = std::move(what)] { callback(what); });
}

void SyncCoordinator::wait(uint32_t rank, PushCallback callback) {
  DTF_CHECK(rank < workers_.size());
  waiting_.add(rank, context_.step_timeout, std::move(callback), gaveWay(rank, context_.host()));
}

void SyncCoordinator::pull(uint32_t rank, const Wanted& wanted, PushCallback callback) {
  const OutwardCalls::Scope scope(context_.calls);
  gone_.arrived(rank);
  const std::shared_ptr<const arena::ParameterVersion>& previous = context_.store.previous();
  StepState state = stateNow(rank, Outcome::kApplied);
  if (!wanted.step || !previous || previous->version() != *wanted.step) {
    return answer(std::move(callback), PushReply{state, context_.store.current()});
  }
  state.global_step = *wanted.step;
  state.next_step = *wanted.step;
  state.next_batch = workers_[rank].lastBatch();
  state.done = false;
  answer(std::move(callback), PushReply{state, previous});
}

// ---- pushes

// Answers a push that breaks the rules with an Error, and returns true.
bool SyncCoordinator::refused(const Contribution& c, PushCallback& callback) {
  const size_t batches = workers_[c.rank].batches.size();
  std::string why;
  if (const auto fault =
          context_.store.gradientLayout().fault({c.gradient, nullptr, c.row_counts})) {
    why = *fault;
  } else if (c.step > step()) {
    why = fmt::format("step {} while the job is at step {}", c.step, step());
  } else if (c.batch >= batches) {
    why = fmt::format("batch {}, counted from 0, of its {} per step", c.batch, batches);
  } else {
    return false;
  }
  answer(std::move(callback),
         Error(ErrorCode::kBadData,
               fmt::format("{} pushed to {} {}", workerName(c.rank), context_.host().name(), why)));
  return true;
}

// Answers a push of a step that is over, and returns true. It has no effect.
bool SyncCoordinator::answeredAsPast(const Contribution& c, PushCallback& callback) {
  if (c.step == step() && !isDone()) return false;
  const bool in_set = c.step < step() && workers_[c.rank].wasInSet(step() - c.step);
  if (in_set && c.batch + 1 < workers_[c.rank].batches.size()) {
    ++counters_.gradients_repeated;
    answer(std::move(callback), PushReply{queuedState(c.step, c.batch), nullptr});
    return true;
  }
  ++(in_set ? counters_.gradients_repeated : counters_.gradients_stale);
  const Outcome outcome = in_set ? Outcome::kApplied : Outcome::kStale;
  answer(std::move(callback), PushReply{stateNow(c.rank, outcome), context_.store.current()});
  return true;
}

// Answers a batch before which others are missing, and returns true: an earlier process of this ps
// had them, and its replica hasn't. The worker computes them again; a gradient that is still held
// is not replaced.
bool SyncCoordinator::sentBack(const Contribution& c, PushCallback& callback) {
  if (!resumed_ || c.batch <= workers_[c.rank].firstMissing()) return false;
  answer(std::move(callback),
         PushReply{stateNow(c.rank, Outcome::kWentBack), context_.store.current()});
  return true;
}

void SyncCoordinator::push(Contribution contribution, PushCallback callback) {
  const OutwardCalls::Scope scope(context_.calls);
  gone_.arrived(contribution.rank);
  if (refused(contribution, callback)) return;
  if (answeredAsPast(contribution, callback)) return;
  if (sentBack(contribution, callback)) return;
  // A worker pushes this step after every ps has sent it, so the parameters before it are no longer
  // needed.
  context_.store.dropPrevious();
  const uint32_t rank = contribution.rank;
  const bool is_last = contribution.batch + 1 == workers_[rank].batches.size();
  if (is_last) {
    wait(rank, std::move(callback));
  } else {
    answer(std::move(callback),
           PushReply{queuedState(contribution.step, contribution.batch), nullptr});
  }
  if (workers_[rank].batches[contribution.batch]) {
    ++counters_.gradients_repeated;
    return failHopeless();
  }
  // While the step is being applied, another gradient is too late: its call waits for the new
  // parameters.
  if (updater_.busy()) return;
  hold(std::move(contribution));
  failHopeless();
  if (hasBackups() && !decided_) report(rank);
  advance();
}

void SyncCoordinator::hold(Contribution contribution) {
  DTF_CHECK(!updater_.busy() && !workers_[contribution.rank].batches[contribution.batch]);
  DTF_CHECK(held_ < std::max<size_t>(needed_, workers_.size()));
  workers_[contribution.rank].batches[contribution.batch] = contribution.takeGradient();
  workers_[contribution.rank].losses[contribution.batch] = contribution.loss;
  ++held_;
}

// ---- updates

void SyncCoordinator::onCommitted(const std::vector<uint32_t>& ranks) {
  counters_.gradients_applied += hasBackups() ? ranks.size() : needed_;
  if (cut_.armed() && cut_.target()[0] == step()) cut_.take();
  last_loss_ = set_loss_;
  decided_ = std::nullopt;
  resumed_ = false;
  decider_.nextStep();
  held_ = 0;
  for (Worker& worker : workers_) {
    worker.sets <<= 1;
    std::fill(worker.batches.begin(), worker.batches.end(), std::nullopt);
  }
  for (const uint32_t rank : ranks) workers_[rank].sets |= 1;
  if (announcesAfterwards()) announceLast();
  for (uint32_t rank = 0; rank < workers_.size(); ++rank) {
    if (!waiting_.waits(rank)) continue;
    const bool applied = std::binary_search(ranks.begin(), ranks.end(), rank);
    if (!applied) ++counters_.gradients_stale;
    const Outcome outcome = applied ? Outcome::kApplied : Outcome::kStale;
    waiting_.answer(rank, PushReply{stateNow(rank, outcome), context_.store.current()});
    has_sent_ = true;
  }
  failHopelessCut();
}

// ---- membership

void SyncCoordinator::joined(uint32_t rank, Incarnation) {
  const OutwardCalls::Scope scope(context_.calls);
  waiting_.answer(rank,
                  Error(ErrorCode::kUnavailable,
                        fmt::format("fenced: {} was replaced by a newer process; end this one",
                                    workerName(rank))));
  gone_.joined(rank);
}

void SyncCoordinator::finished(uint32_t rank) {
  const bool done = context_.store.initialised() && isDone();
  if (!done) gone(rank, workerName(rank) + " finished", Duration{0});
}

void SyncCoordinator::lost(uint32_t rank, const std::string& why) {
  gone(rank, why, context_.rejoin_timeout);
}

void SyncCoordinator::gone(uint32_t rank, const std::string& why, Duration patience) {
  DTF_CHECK(rank < workers_.size() && !why.empty());
  const OutwardCalls::Scope scope(context_.calls);
  waiting_.answer(rank, Error(ErrorCode::kUnavailable, "fenced: " + why));
  gone_.gone(rank, why, patience);
  failHopeless();
  if (leads()) advance();
}

// ---- checkpoints

CutPosition SyncCoordinator::position(bool) {
  return {step() + (updater_.busy() ? 1 : 0)};
}

void SyncCoordinator::cutAt(CutPosition target, CutCallback callback) {
  const OutwardCalls::Scope scope(context_.calls);
  // A job may have been restored beyond its declared number of steps.
  const uint64_t furthest = std::max(context_.declaration.steps, position(false)[0]);
  const bool sane = target.size() == 1 && target[0] <= furthest;
  cut_.arm(std::move(target), context_.step_timeout, std::move(callback));
  if (!sane) {
    return cut_.answer(Error(ErrorCode::kBadData,
                             fmt::format("{} got a request for a checkpoint at a step that the "
                                         "job of {} steps doesn't have",
                                         context_.host().name(), context_.declaration.steps)));
  }
  if (cut_.target() < position(false)) return cut_.answer(CutResult{});
  if (cut_.target()[0] == step()) return cut_.take();
  failCutBeyondTheEnd();
  failHopelessCut();
}

void SyncCoordinator::restore(const CutPosition& position) {
  DTF_CHECK(position.size() == 1 && position[0] == step());
}

PushMemory SyncCoordinator::memory() const {
  DTF_CHECK(held_ == 0 && !updater_.busy());
  PushMemory memory;
  memory.workers.resize(workers_.size());
  memory.loss = last_loss_;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank)
    memory.workers[rank].sets = workers_[rank].sets;
  return memory;
}

void SyncCoordinator::resume(const PushMemory& memory) {
  DTF_CHECK(memory.workers.size() == workers_.size() && held_ == 0);
  resumed_ = has_sent_ = true;
  last_loss_ = memory.loss;
  for (uint32_t rank = 0; rank < workers_.size(); ++rank)
    workers_[rank].sets = memory.workers[rank].sets;
  if (announcesAfterwards()) announceLast();
}

// Where nobody has been sent to a step, one more could not be completed: of a job that was stopped
// at this step, or had ended there early, some may have left.
void SyncCoordinator::requestStop() {
  const OutwardCalls::Scope scope(context_.calls);
  const bool at_rest = !has_sent_ && held_ == 0 && !updater_.busy();
  last_step_ = std::min(last_step_, step() + (at_rest ? 0 : 1));
  failCutBeyondTheEnd();
}

CoordinatorStatus SyncCoordinator::status() const {
  CoordinatorStatus status = counters_;
  status.global_step = step();
  status.done = isDone();
  status.callers_waiting = waiting_.size();
  return status;
}

}  // namespace dtf::replication
