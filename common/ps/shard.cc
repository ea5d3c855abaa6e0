#include "common/ps/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::ps {

Shard::Shard(const ShardOptions& options, const Clock& clock, UpdateRunner& runner,
             SyncPeers* peers, ReplicaLink* replica)
    : options_(options),
      clock_(clock),
      runner_(runner),
      peers_(peers),
      replica_(replica),
      membership_(options.workers, options.lease, clock),
      barriers_(options.workers, calls_, clock) {
  for (const uint32_t rank : options.finished_workers) {
    membership_.hasFinished(rank);
    barriers_.left(rank);
  }
}

Shard::~Shard() = default;

uint64_t Shard::elements() const {
  return declaration_ ? declaration_->layout.shards[options_.ps_task].elements : 0;
}

// ---- membership

bool Shard::join(uint32_t rank, Incarnation incarnation) {
  const OutwardCalls::Scope scope(calls_);
  if (!membership_.join(rank, incarnation)) return false;
  declared_alike_.erase(rank);
  refused_.erase(rank);
  trained_.erase(rank);
  evaluate_since_.erase(rank);
  barriers_.returned(rank);
  if (coordinator_) coordinator_->joined(rank, incarnation);
  const Error fenced(
      ErrorCode::kUnavailable,
      fmt::format("fenced: {} was replaced by a newer process; end this one", workerName(rank)));
  dropInitWaiter(rank, fenced);
  dropParked(rank, fenced);
  dropAside(rank, fenced);
  if (rank == kChief.index) restore_expected_since_.reset();
  return true;
}

void Shard::heartbeat(uint32_t rank, Incarnation incarnation, bool evaluates) {
  membership_.heartbeat(rank, incarnation);
  if (evaluates)
    evaluate_since_.try_emplace(rank, clock_.now());
  else
    evaluate_since_.erase(rank);
}

void Shard::finish(uint32_t rank, Incarnation incarnation) {
  const OutwardCalls::Scope scope(calls_);
  membership_.check(rank, incarnation);
  if (membership_.member(rank).state == MemberState::kFinished) return;
  membership_.finish(rank, incarnation);
  evaluate_since_.erase(rank);
  if (coordinator_) coordinator_->finished(rank);
  barriers_.left(rank);
}

void Shard::checkMayEndJob(uint32_t rank, Incarnation incarnation) {
  membership_.check(rank, incarnation);
  const bool finished = membership_.member(rank).state == MemberState::kFinished;
  const bool decides = rank == kChief.index && declared_alike_.contains(rank);
  if (!finished && (decides || !anybodyTrains() || trained_.contains(rank))) return;
  throw Error(ErrorCode::kPermission,
              fmt::format("{} {}, so its failure doesn't end the job", workerName(rank),
                          finished ? "has finished" : "joined a job that trains without it"));
}

bool Shard::anybodyTrains() const {
  return std::any_of(trained_.begin(), trained_.end(), [this](uint32_t rank) {
    return membership_.member(rank).state == MemberState::kJoined;
  });
}

void Shard::markLost(uint32_t rank) {
  const OutwardCalls::Scope scope(calls_);
  if (rank >= options_.workers || membership_.member(rank).state != MemberState::kJoined) return;
  membership_.markLost(rank);
  lose({rank, workerName(rank) + " was lost (its process ended)"});
}

void Shard::giveUpAwaited() {
  const OutwardCalls::Scope scope(calls_);
  for (uint32_t rank = 0; rank < options_.workers; ++rank) {
    if (membership_.member(rank).state != MemberState::kAwaited) continue;
    membership_.giveUp(rank);
    lose({rank, fmt::format("{} was lost (it has not joined ps/{} since that ps was started)",
                            workerName(rank), options_.ps_task)});
  }
}

void Shard::leave(uint32_t rank, Incarnation incarnation, const std::string& reason) {
  const OutwardCalls::Scope scope(calls_);
  DTF_CHECK(!reason.empty());
  membership_.check(rank, incarnation);
  if (membership_.member(rank).state == MemberState::kFinished) return;  // it is nobody's loss
  membership_.markLost(rank);
  lose({rank, fmt::format("{} was lost (it has left: {})", workerName(rank), reason)});
}

void Shard::lose(const Membership::Loss& loss) {
  const Error fenced(ErrorCode::kUnavailable, "fenced: " + loss.why);
  dropInitWaiter(loss.rank, fenced);
  dropParked(loss.rank, fenced);
  dropAside(loss.rank, fenced);
  evaluate_since_.erase(loss.rank);
  if (coordinator_) coordinator_->lost(loss.rank, loss.why);
  barriers_.left(loss.rank);
}

// ---- initial values

bool Shard::initialise(uint32_t rank, Incarnation incarnation, std::span<const float> values,
                       uint64_t epoch) {
  const OutwardCalls::Scope scope(calls_);
  membership_.check(rank, incarnation);
  if (rank != kChief.index) {
    throw Error(ErrorCode::kPermission,
                fmt::format("{} sent initial values to ps/{}; only the chief, {}, does",
                            workerName(rank), options_.ps_task, kChief.name()));
  }
  if (!store_) throw notDeclared("initial values");
  requireEpoch(epoch, "the initial values");
  if (initialised() && epoch <= epoch_) return false;
  take({.epoch = epoch}, [&] { store_->initialise(values); });
  return true;
}

void Shard::letInitWaitersGo(bool at_rest) {
  DTF_CHECK(coordinator_ != nullptr && store_->initialised());
  if (stop_requested_) coordinator_->requestStop(at_rest);
  for (InitWaiter& waiter : init_waiters_) {
    calls_.add([callback = std::move(waiter.callback)] { callback(Arrived{}); });
  }
  init_waiters_.clear();
}

void Shard::waitInitialised(uint32_t rank, Incarnation incarnation, Duration timeout,
                            WaitCallback callback) {
  const OutwardCalls::Scope scope(calls_);
  const std::optional<Error> error = membershipError(rank, incarnation);
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  if (store_ && store_->initialised()) {
    return calls_.add([callback = std::move(callback)] { callback(Arrived{}); });
  }
  dropInitWaiter(rank, gaveWay(rank));
  init_waiters_.push_back(
      {rank, std::move(callback), deadlineAfter(clock_.now(), timeout), timeout});
}

void Shard::dropInitWaiter(uint32_t rank, const Error& error) {
  std::erase_if(init_waiters_, [&](InitWaiter& waiter) {
    if (waiter.rank != rank) return false;
    calls_.add([callback = std::move(waiter.callback), error] { callback(error); });
    return true;
  });
}

// Which variables have no values here, for a message.
std::string Shard::uninitialisedText() const {
  if (!declaration_) return "; no model is declared";
  constexpr size_t kNamedMax = 5;
  const std::vector<Slice>& slices = declaration_->layout.shards[options_.ps_task].slices;
  if (slices.empty()) return "";
  std::string text;
  for (size_t i = 0; i < std::min(slices.size(), kNamedMax); ++i)
    text += (i == 0 ? "; without values: " : ", ") +
            declaration_->layout.variables[slices[i].variable].name;
  if (slices.size() > kNamedMax) text += fmt::format(" and {} more", slices.size() - kNamedMax);
  return text;
}

void Shard::expireInitWaiters() {
  const TimePoint now = clock_.now();
  std::erase_if(init_waiters_, [&](InitWaiter& waiter) {
    if (now < waiter.deadline) return false;
    const std::string missing = membership_.missingText();
    const Error error(ErrorCode::kDeadline,
                      fmt::format("{} has waited {} for the chief, {}, to initialise ps/{}{}{}",
                                  workerName(waiter.rank), secondsText(waiter.timeout),
                                  kChief.name(), options_.ps_task, uninitialisedText(),
                                  missing.empty() ? "" : "; absent: " + missing));
    calls_.add([callback = std::move(waiter.callback), error] { callback(error); });
    return true;
  });
}

// ---- steps

Error Shard::gaveWay(uint32_t rank) const {
  return {ErrorCode::kUnavailable,
          fmt::format("{} asked ps/{} again; this call gave way to the newer one", workerName(rank),
                      options_.ps_task)};
}

Error Shard::notDeclared(std::string_view what) const {
  return Error(ErrorCode::kUnavailable,
               fmt::format("ps/{} received {} before the model was declared to it; it was "
                           "restarted, or the worker skipped a call",
                           options_.ps_task, what));
}

std::optional<Error> Shard::membershipError(uint32_t rank, Incarnation incarnation) {
  try {
    membership_.check(rank, incarnation);
  } catch (const Error& error) {
    return error;
  }
  const auto refused = refused_.find(rank);
  if (refused != refused_.end()) return refused->second;
  return std::nullopt;
}

std::optional<Error> Shard::stepError(uint32_t rank, Incarnation incarnation,
                                      std::string_view what) {
  std::optional<Error> error = membershipError(rank, incarnation);
  if (error) return error;
  if (!store_) return notDeclared(what);
  if (!store_->initialised()) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("ps/{} received {} before the chief, {}, initialised it",
                             options_.ps_task, what, kChief.name()));
  }
  return std::nullopt;
}

void Shard::pull(uint32_t rank, Incarnation incarnation, const Wanted& wanted,
                 PushCallback callback, uint64_t epoch) {
  const OutwardCalls::Scope scope(calls_);
  std::optional<Error> error = membershipError(rank, incarnation);
  if (!error && epoch != 0) error = badEpoch(epoch, workerName(rank));
  if (!error && !canCome(epoch)) error = cannotCome(rank, epoch);
  if (!error && mayPark() && (!initialised() || epoch_ < epoch))
    return park({.rank = rank,
                 .incarnation = incarnation,
                 .epoch = epoch,
                 .wanted = wanted,
                 .callback = std::move(callback)});
  if (!error) evaluate_since_.erase(rank);  // what it may say next is of another evaluation
  if (!error) error = stepError(rank, incarnation, "a pull");
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  coordinator_->pull(rank, wanted, std::move(callback));
}

std::shared_ptr<const Snapshot> Shard::readableParameters() {
  DTF_CHECK(initialised());
  return store_->readable();
}

void Shard::shareParameters() {
  if (store_ != nullptr) store_->shareParameters(options_.workers);
}

void Shard::push(Contribution contribution, PushCallback callback) {
  const OutwardCalls::Scope scope(calls_);
  std::optional<Error> error = membershipError(contribution.rank, contribution.incarnation);
  if (!error) error = badEpoch(contribution.epoch, workerName(contribution.rank));
  if (!error && mayPark() && !initialised()) {
    Parked call{.rank = contribution.rank,
                .incarnation = contribution.incarnation,
                .callback = std::move(callback)};
    call.contribution = std::move(contribution);
    return park(std::move(call));
  }
  if (!error) error = stepError(contribution.rank, contribution.incarnation, "a gradient");
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  if (contribution.epoch != epoch_) return answerWentBack(contribution.rank, std::move(callback));
  gradient_bytes_ += contribution.gradient.size_bytes();
  const uint32_t rank = contribution.rank;
  evaluate_since_.erase(rank);
  if (!trained_.insert(rank).second)
    return coordinator_->push(std::move(contribution), std::move(callback));
  // A gradient that is refused makes nobody one who trains.
  coordinator_->push(std::move(contribution),
                     [this, rank, callback = std::move(callback)](PushAnswer answer) {
                       if (std::holds_alternative<Error>(answer)) trained_.erase(rank);
                       callback(std::move(answer));
                     });
}

void Shard::barrier(uint32_t rank, Incarnation incarnation, std::string_view name, Arrival arrival,
                    Duration timeout, WaitCallback callback) {
  const OutwardCalls::Scope scope(calls_);
  const std::optional<Error> error = membershipError(rank, incarnation);
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  barriers_.arrive(name, rank, arrival, timeout, std::move(callback));
}

// ---- checkpoints

void Shard::checkChief(Incarnation chief, std::string_view what) {
  membership_.check(kChief.index, chief);
  if (!store_) throw notDeclared(what);
}

CutPosition Shard::position(Incarnation chief, bool hold) {
  const std::optional<Error> error = stepError(kChief.index, chief, "a query for a checkpoint");
  if (error) throw Error(*error);
  return coordinator_->position(hold);
}

void Shard::cutAt(Incarnation chief, uint64_t epoch, CutPosition target, CutCallback callback) {
  const OutwardCalls::Scope scope(calls_);
  std::optional<Error> error = stepError(kChief.index, chief, "a request for a checkpoint");
  if (!error && epoch != epoch_) error = wentBackDuringCut(options_.ps_task);
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  coordinator_->cutAt(std::move(target), std::move(callback));
}

void Shard::releaseHold(Incarnation chief) {
  checkChief(chief, "the end of a checkpoint");
  coordinator_->releaseHold();
}

Shard::Captured Shard::captured(Incarnation chief, const CutPosition& position) {
  checkChief(chief, "a request to save");
  const std::shared_ptr<const Capture>& latest = coordinator_->cuts().latest();
  if (latest == nullptr || latest->position != position) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("ps/{} can't save {}: {}; a later checkpoint is tried",
                            options_.ps_task, cutText(position),
                            latest == nullptr ? "it has captured nothing"
                                              : "it has captured " + cutText(latest->position)));
  }
  return {latest, *declaration_};
}

void Shard::releaseCapture() {
  if (coordinator_) coordinator_->cuts().release();
}

void Shard::requestStop(uint32_t rank, Incarnation incarnation) {
  const OutwardCalls::Scope scope(calls_);
  membership_.check(rank, incarnation);
  stop_requested_ = true;  // of a job that nobody has declared yet, too
  if (store_ && store_->initialised()) coordinator_->requestStop(false);
}

void Shard::failAll(const Error& error) {
  const OutwardCalls::Scope scope(calls_);
  for (uint32_t rank = 0; rank < options_.workers; ++rank) {
    dropInitWaiter(rank, error);
    dropParked(rank, error);
    dropAside(rank, error);
  }
  answerReplicaWaiter(error);
  if (coordinator_) coordinator_->failAll(error);
}

void Shard::tick() {
  const OutwardCalls::Scope scope(calls_);
  for (const Membership::Loss& loss : membership_.expire()) lose(loss);
  expireInitWaiters();
  holdDeadlines();
  expireParked();
  expireAside();
  barriers_.tick();
  if (coordinator_) coordinator_->tick();
}

ShardStatus Shard::status() const {
  ShardStatus status;
  status.declared = declaration_.has_value();
  status.initialised = store_ && store_->initialised();
  status.all_finished = membership_.allFinished();
  for (uint32_t rank = 0; rank < options_.workers; ++rank) {
    status.members.push_back(membership_.member(rank));
  }
  status.missing = membership_.missingText();
  status.trains = anybodyTrains() || refilled_;
  status.gradient_bytes = gradient_bytes_;
  status.epoch = epoch_;
  if (declaration_) status.steps = declaration_->steps;
  if (status.initialised) {
    status.coordinator = coordinator_->status();
    status.saved = saved_version_ == store_->version();
  }
  status.callers_waiting =
      static_cast<uint32_t>(init_waiters_.size() + parked_.size() + aside_waiters_.size()) +
      barriers_.waiting() + status.coordinator.callers_waiting;
  return status;
}

}  // namespace dtf::ps
