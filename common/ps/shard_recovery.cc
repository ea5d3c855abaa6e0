// Shard, third part: what it says of its values, going back to an earlier cut, and the calls that
// wait for values.

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/ps/replication_rules.h"
#include "common/ps/shard.h"

namespace dtf::ps {

PsWord Shard::word() const {
  PsWord word;
  word.answered = true;
  if (!initialised()) return word;
  word.epoch = epoch_;
  word.step = store_->version();
  word.origin = origin_;
  word.origin_cut = origin_cut_;
  return word;
}

// Nullopt: it may be one.
std::optional<Error> Shard::badEpoch(uint64_t epoch, const std::string& whose) const {
  if (validEpoch(epoch)) return std::nullopt;
  return Error(ErrorCode::kBadData, fmt::format("ps/{} received the invalid epoch {:#x} for {}",
                                                options_.ps_task, epoch, whose));
}

void Shard::requireEpoch(uint64_t epoch, const std::string& whose) const {
  if (const std::optional<Error> error = badEpoch(epoch, whose)) throw Error(*error);
}

void Shard::beginEpoch(const Beginning& beginning) {
  DTF_CHECK(beginning.epoch > 0 && epoch_ == 0 && initialised());
  epoch_ = beginning.epoch;
  origin_ = beginning.origin;
  origin_cut_ = beginning.cut;
  barriers_.beginEpoch(epoch_);
  if (replicator_)
    replicator_->begin({epoch_, origin_, origin_cut_, 0, {}, coordinator_->memory()},
                       beginning.has_replica);
  letInitWaitersGo(beginning.at_rest);
  resumeParked();
}

// ---- going back

void Shard::expectRestore(Incarnation chief) {
  checkChief(chief, "a request to read saved values");
  restore_expected_since_ = clock_.now();
}

bool Shard::chiefLives() const {
  return membership_.member(kChief.index).state == MemberState::kJoined;
}

bool Shard::isGoingBack() const {
  return restore_expected_since_ && chiefLives() &&
         clock_.now() < deadlineAfter(*restore_expected_since_, kBringBackMax);
}

bool Shard::restore(Incarnation chief, const RestoredShard& state) {
  const OutwardCalls::Scope scope(calls_);
  checkChief(chief, "a request to restore saved values");
  requireEpoch(state.epoch, "the saved values");
  if (epoch_ == state.epoch) return false;
  if (epoch_ > state.epoch)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("ps/{} is on epoch {} already: it can't go back to epoch {}",
                            options_.ps_task, epochNumber(epoch_), epochNumber(state.epoch)));
  // Of a job that was stopped at this cut some may have left: one step more could not be completed.
  take({state.epoch, state.origin, state.cut, /*at_rest=*/true}, [&] {
    std::vector<std::span<const float>> slots;
    for (const Buffer& slot : state.slots)
      slots.emplace_back(slot.as<float>(), slot.bytes() / sizeof(float));
    store_->restore({state.values.as<float>(), state.values.bytes() / sizeof(float)}, slots,
                    state.clock, state.version);
    coordinator_->restore(state.position);
    if (state.origin == EpochOrigin::kCheckpoint) saved_version_ = state.version;
  });
  return true;
}

// `fill` gives an empty store its values. What it had before goes first: a host need not have room
// for both.
void Shard::take(const Beginning& beginning, const std::function<void()>& fill) {
  DTF_CHECK(validEpoch(beginning.epoch) && beginning.epoch > epoch_);
  const ModelDeclaration model = declaration_.value();
  std::vector<Coordinator::Stranded> stranded;
  try {
    if (initialised()) leaveEpoch(stranded);
    fill();
  } catch (const std::bad_alloc&) {
    const Error error = noMemory(model);
    loseValues(std::move(stranded), error);
    throw Error(error);
  } catch (const Error& error) {
    loseValues(std::move(stranded), error);
    throw;
  }
  restore_expected_since_.reset();
  beginEpoch(beginning);
  for (Coordinator::Stranded& call : stranded) answerWentBack(call.rank, std::move(call.callback));
  if (!aside_waiters_.empty()) coordinator_->whenIdle([this] { answerAside(); });
}

// What was computed from the values that go now has no effect any more: queued, held, or granted.
void Shard::leaveEpoch(std::vector<Coordinator::Stranded>& stranded) {
  DTF_CHECK(initialised() && epoch_ > 0);
  stranded = coordinator_->takeWaiting();
  answerReplicaWaiter(
      Error(ErrorCode::kUnavailable,
            fmt::format("ps/{} left the epoch while its replica was made", options_.ps_task)));
  epoch_ = 0;
  const ModelDeclaration declaration = *declaration_;
  adopt(declaration);
}

// A shard that could not be made again has no model either: whoever declared it has to do so again.
void Shard::loseValues(std::vector<Coordinator::Stranded> stranded, const Error& error) {
  DTF_CHECK(!initialised() && epoch_ == 0);
  log::error("event=values_not_taken ps=ps/{} reason=\"{}\"", options_.ps_task, error.message());
  if (!declaration_) declared_alike_.clear();
  for (Coordinator::Stranded& call : stranded)
    calls_.add([callback = std::move(call.callback), error] { callback(error); });
  for (uint32_t rank = 0; rank < options_.workers; ++rank) dropAside(rank, error);
}

// With what the worker computes next, which may have to wait for a grant.
void Shard::answerWentBack(uint32_t rank, PushCallback callback) {
  DTF_CHECK(initialised() && callback != nullptr);
  coordinator_->pull(rank, {}, [callback = std::move(callback)](PushAnswer answer) {
    if (auto* reply = std::get_if<PushReply>(&answer)) reply->state.outcome = Outcome::kWentBack;
    callback(std::move(answer));
  });
}

// ---- calls that wait for values

// Whether `push` was made before the call that waits: it was said a second time, on another
// connection, and comes late.
bool Shard::isOlder(const Parked& push, const Parked& waiting) {
  if (!push.contribution || push.rank != waiting.rank || push.incarnation != waiting.incarnation)
    return false;
  // Who pulls has nothing to push before it is answered.
  if (!waiting.contribution) return true;
  return std::pair(push.contribution->epoch, push.contribution->step) <
         std::pair(waiting.contribution->epoch, waiting.contribution->step);
}

void Shard::park(Parked call) {
  DTF_CHECK(call.rank < options_.workers && call.callback != nullptr);
  if (std::ranges::any_of(parked_, [&](const Parked& other) { return isOlder(call, other); }))
    return calls_.add(
        [callback = std::move(call.callback), error = gaveWay(call.rank)] { callback(error); });
  dropParked(call.rank, gaveWay(call.rank));
  call.since = clock_.now();
  call.deadline = deadlineAfter(call.since, options_.rejoin_timeout);
  parked_.push_back(std::move(call));
}

void Shard::dropParked(uint32_t rank, const Error& error) {
  std::erase_if(parked_, [&](Parked& call) {
    if (call.rank != rank) return false;
    calls_.add([callback = std::move(call.callback), error] { callback(error); });
    return true;
  });
}

// Those that wait for a later epoch still are parked again, with their deadline.
void Shard::resumeParked() {
  for (Parked& call : std::exchange(parked_, {})) {
    if (!canCome(call.epoch)) {
      calls_.add([callback = std::move(call.callback), error = cannotCome(call.rank, call.epoch)] {
        callback(error);
      });
    } else if (call.epoch > epoch_) {
      parked_.push_back(std::move(call));
    } else if (call.contribution) {
      push(std::move(*call.contribution), std::move(call.callback));
    } else if (call.aside) {
      pullAside(call.rank, call.incarnation, *call.aside, std::move(call.callback));
    } else {
      pull(call.rank, call.incarnation, call.wanted, std::move(call.callback), call.epoch);
    }
  }
  for (const EarlyReport& report : std::exchange(early_, {})) {
    try {
      onReceived(report.ps_task, report.step, report.rank);
    } catch (const Error& error) {  // a peer's mistake is no reason not to begin the epoch
      log::warning("event=early_report_refused ps=ps/{} reason=\"{}\"", report.ps_task,
                   error.message());
    }
  }
}

// That a worker says so is no proof that there is such an epoch, and while a pull waits for it
// nobody has a deadline. Before this shard has values of its own there is nothing to judge by.
bool Shard::canCome(uint64_t epoch) const {
  return !initialised() || epochNumber(epoch) <= epochNumber(epoch_) + kEpochsMissedMax;
}

Error Shard::cannotCome(uint32_t rank, uint64_t epoch) const {
  return {ErrorCode::kBadData,
          fmt::format("{} asked ps/{} for parameters of epoch {}, but the job is on epoch {}",
                      workerName(rank), options_.ps_task, epochNumber(epoch), epochNumber(epoch_))};
}

// A chief that lives brings what is missing. How long it takes to read that is no fault of those
// who wait; after its loss they wait for its return.
void Shard::holdDeadlines() {
  if (initialised() && whoEvaluates()) coordinator_->extendDeadlines();
  const bool going_back = isGoingBack();
  if (!going_back && !awaitsReplica() && (initialised() || !chiefLives())) return;
  const TimePoint later = deadlineAfter(clock_.now(), options_.rejoin_timeout);
  for (Parked& call : parked_)
    call.deadline =
        std::max(call.deadline, std::min(later, deadlineAfter(call.since, kBringBackMax)));
  if ((going_back || awaitsReplica()) && initialised()) coordinator_->extendDeadlines();
}

// Not who has done so for longer than it may.
std::optional<uint32_t> Shard::whoEvaluates() const {
  for (const auto& [rank, since] : evaluate_since_)
    if (clock_.now() - since < options_.evaluation_max) return rank;
  return std::nullopt;
}

void Shard::expireParked() {
  const TimePoint now = clock_.now();
  std::erase_if(parked_, [&](Parked& call) {
    if (now < call.deadline) return false;
    const Error error(ErrorCode::kDeadline,
                      fmt::format("{} has waited {} for {} to bring the values of ps/{} back",
                                  workerName(call.rank), secondsText(now - call.since),
                                  kChief.name(), options_.ps_task));
    calls_.add([callback = std::move(call.callback), error] { callback(error); });
    return true;
  });
}

std::string Shard::awaitedText() const {
  if (parked_.empty() && isGoingBack())
    return fmt::format("{} to take ps/{} back to saved values", kChief.name(), options_.ps_task);
  if (!parked_.empty())
    return fmt::format("{} to bring the values of ps/{} back", kChief.name(), options_.ps_task);
  if (!coordinator_) return "";
  // Its deadlines are held meanwhile, so that the coordinator knows nobody who has waited long.
  if (awaitsReplica() && coordinator_->status().callers_waiting > 0) return awaitedReplicaText();
  const std::optional<uint32_t> evaluates = whoEvaluates();
  const auto& replication = declaration_->replication;
  const bool may_wait = sharesSteps(replication) || staleness(replication);
  if (evaluates && may_wait && !coordinator_->awaitsReturn() &&
      clock_.now() - evaluate_since_.at(*evaluates) > kSaidAfter &&
      coordinator_->status().callers_waiting > 0)
    return workerName(*evaluates) + " to finish its evaluation";
  return coordinator_->awaitedText();
}

bool Shard::awaitsReturn() const {
  return !parked_.empty() || isGoingBack() || awaitsReplica() || whoEvaluates() ||
         (coordinator_ && coordinator_->awaitsReturn());
}

// ---- other ps

// A follower may be on an epoch before the leader is: what it reports counts when this shard is
// there, too.
void Shard::onReceived(uint32_t ps_task, StepName step, uint32_t rank) {
  const OutwardCalls::Scope scope(calls_);
  requireEpoch(step.epoch, fmt::format("a gradient on ps/{}", ps_task));
  if (!initialised() || step.epoch > epoch_) {
    const size_t early_max = size_t{options_.ps_tasks} * options_.workers;
    const bool sane = ps_task < options_.ps_tasks && rank < options_.workers;
    std::erase_if(early_, [&](const EarlyReport& report) {
      return report.ps_task == ps_task && report.rank == rank;
    });
    if (!sane || early_.size() >= early_max)
      throw Error(ErrorCode::kBadData, fmt::format("ps/{} reported an impossible gradient of {}",
                                                   ps_task, workerName(rank)));
    early_.push_back({ps_task, step, rank});
    return;
  }
  if (step.epoch == epoch_) coordinator_->onReceived(ps_task, step.step, rank);
}

void Shard::onLeaderLinked() {
  const OutwardCalls::Scope scope(calls_);
  if (initialised()) coordinator_->onLeaderLinked();
}

void Shard::onFollowerLinked(uint32_t ps_task) {
  const OutwardCalls::Scope scope(calls_);
  std::erase_if(early_, [&](const EarlyReport& report) { return report.ps_task == ps_task; });
  if (initialised()) coordinator_->onFollowerLinked(ps_task);
}

// A decision of a later epoch can't be: it takes gradients that are on this ps. One that a process
// of this ps before this one did not hear is of an epoch that will be left, or is announced again.
void Shard::onDecision(StepName step, const std::vector<uint32_t>& ranks) {
  const OutwardCalls::Scope scope(calls_);
  if (!initialised() || step.epoch < epoch_) return;
  if (step.epoch > epoch_)
    throw Error(ErrorCode::kBadData,
                fmt::format("ps/{} received a decision of epoch {}, but it is on epoch {}",
                            options_.ps_task, epochNumber(step.epoch), epochNumber(epoch_)));
  coordinator_->onDecision(step.step, ranks);
}

}  // namespace dtf::ps
