#include "common/shard/shard.h"

#include <fmt/format.h>

#include <new>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/replication/epoch.h"
#include "common/replication/replication_rules.h"

namespace dtf::shard {

Shard::Shard(const ShardOptions& options, const Clock& clock, optimizer::UpdateRunner& runner,
             replication::SyncPeers* peers, replication::ReplicaLink* replica)
    : options_(options),
      clock_(clock),
      table_(options.workers, options.lease, options.evaluation_max, clock),
      backup_(options_, replica, calls_, clock),
      values_(options_, clock, runner, calls_, peers, backup_, table_),
      waits_(options_, calls_, clock),
      workers_(options_, clock, calls_, table_, values_, waits_),
      cuts_(options_, calls_, table_, values_),
      readers_(options_, clock, calls_, values_),
      peers_(options_, calls_, values_),
      recovery_(options_, clock, calls_, table_, values_, backup_, cuts_,
                [this](const Beginning& beginning, const std::function<void()>& fill) {
                  take(beginning, fill);
                }) {}

Shard::~Shard() = default;

// ---- an epoch's beginning

bool Shard::initialise(uint32_t rank, Incarnation incarnation, std::span<const float> values,
                       uint64_t epoch) {
  const replication::OutwardCalls::Scope scope(calls_);
  table_.membership().check(rank, incarnation);
  if (rank != kChief.index) {
    throw Error(ErrorCode::kPermission,
                fmt::format("{} sent initial values to {}; only the chief, {}, does",
                            replication::workerName(rank), options_.host().name(), kChief.name()));
  }
  if (!values_.isDeclared()) throw values_.notDeclared("initial values");
  requireEpoch(options_.host(), epoch, "the initial values");
  if (values_.initialised() && epoch <= values_.epoch()) return false;
  take({{epoch}}, [&] { values_.store().initialise(values); });
  return true;
}

// Replaces the values with the ones that `fill` gives an empty store. The old values go first: a
// host need not have room for both.
void Shard::take(const Beginning& beginning, const std::function<void()>& fill) {
  DTF_CHECK(replication::validEpoch(beginning.epoch) && beginning.epoch > values_.epoch());
  const arena::ModelDeclaration model = values_.declaration().value();
  std::vector<replication::Coordinator::Stranded> stranded;
  try {
    if (values_.initialised()) {
      stranded = values_.leave();
      backup_.failWaiting(Error(
          ErrorCode::kUnavailable,
          fmt::format("{} left the epoch while its replica was made", options_.host().name())));
      values_.adopt(model);
    }
    fill();
  } catch (const std::bad_alloc&) {
    const Error error = values_.noMemory(model);
    loseValues(std::move(stranded), error);
    throw Error(error);
  } catch (const Error& error) {
    loseValues(std::move(stranded), error);
    throw;
  }
  recovery_.haveCome();
  workers_.beginEpoch(beginning.epoch);
  values_.begin(beginning);
  waits_.letGo();
  resumeParked();
  readers_.beginEpoch();
  peers_.beginEpoch();
  for (replication::Coordinator::Stranded& call : stranded)
    answerWentBack(call.rank, std::move(call.callback));
  if (waits_.anyAside())
    values_.coordinator().callAfter(replication::UpdateEnd::kRunning, [this] { answerAside(); });
}

// Answers waiting calls with `error`. A shard that could not be made again has no model either: the
// workers have to declare it again.
void Shard::loseValues(std::vector<replication::Coordinator::Stranded> stranded,
                       const Error& error) {
  DTF_CHECK(!values_.initialised() && values_.epoch() == 0);
  log::error("event=values_not_taken ps={} reason=\"{}\"", options_.host().name(), error.message());
  if (!values_.isDeclared()) workers_.forgetDeclared();
  for (replication::Coordinator::Stranded& call : stranded)
    calls_.add([callback = std::move(call.callback), error] { callback(error); });
  waits_.dropAside(error);
}

// Calls that wait for a later epoch are parked again, with their deadline.
void Shard::resumeParked() {
  for (ShardWaits::Parked::Call& call : waits_.takeParked()) {
    ParkedCall& parked = call.detail;
    if (!canCome(parked.epoch)) {
      calls_.add([callback = std::move(call.callback),
                  error = cannotCome(call.rank, parked.epoch)] { callback(error); });
    } else if (parked.epoch > values_.epoch()) {
      waits_.parkAgain(std::move(call));
    } else if (parked.contribution) {
      push(std::move(*parked.contribution), std::move(call.callback));
    } else if (parked.aside) {
      pullAside(call.rank, parked.incarnation, *parked.aside, std::move(call.callback));
    } else {
      pull(call.rank, parked.incarnation, parked.wanted, std::move(call.callback), parked.epoch);
    }
  }
}

// Answers with the worker's next step, which may have to wait for a grant.
void Shard::answerWentBack(uint32_t rank, replication::PushCallback callback) {
  DTF_CHECK(values_.initialised() && callback != nullptr);
  values_.coordinator().pull(rank, {},
                             [callback = std::move(callback)](replication::PushAnswer answer) {
                               if (auto* reply = std::get_if<replication::PushReply>(&answer))
                                 reply->state.outcome = replication::Outcome::kWentBack;
                               callback(std::move(answer));
                             });
}

// ---- calls about parameters

void Shard::waitInitialised(uint32_t rank, Incarnation incarnation, Duration timeout,
                            replication::WaitCallback callback) {
  const replication::OutwardCalls::Scope scope(calls_);
  const std::optional<Error> error = table_.errorOf(rank, incarnation);
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  if (values_.initialised())
    return calls_.add([callback = std::move(callback)] { callback(replication::Arrived{}); });
  waits_.awaitInitialised(rank, timeout, std::move(callback));
}

// Whether `epoch` is near enough to exist. A worker can name any, and while a pull waits for it no
// call has a deadline. A shard without values has nothing to compare it with.
bool Shard::canCome(uint64_t epoch) const {
  return !values_.initialised() || replication::epochNumber(epoch) <=
                                       replication::epochNumber(values_.epoch()) + kEpochsMissedMax;
}

Error Shard::cannotCome(uint32_t rank, uint64_t epoch) const {
  return {ErrorCode::kBadData,
          fmt::format("{} asked {} for parameters of epoch {}, but the job is on epoch {}",
                      replication::workerName(rank), options_.host().name(),
                      replication::epochNumber(epoch), replication::epochNumber(values_.epoch()))};
}

void Shard::pull(uint32_t rank, Incarnation incarnation, const replication::Wanted& wanted,
                 replication::PushCallback callback, uint64_t epoch) {
  const replication::OutwardCalls::Scope scope(calls_);
  std::optional<Error> error = table_.errorOf(rank, incarnation);
  if (!error && epoch != 0) error = badEpoch(options_.host(), epoch, replication::workerName(rank));
  if (!error && !canCome(epoch)) error = cannotCome(rank, epoch);
  if (!error && mayPark() && (!values_.initialised() || values_.epoch() < epoch))
    return waits_.park(rank, {.incarnation = incarnation, .epoch = epoch, .wanted = wanted},
                       std::move(callback));
  // Its next report is of another evaluation.
  if (!error) table_.notes(rank).evaluates_since.reset();
  if (!error) error = values_.notReadyFor("a pull");
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  values_.coordinator().pull(rank, wanted, std::move(callback));
}

void Shard::push(replication::Contribution contribution, replication::PushCallback callback) {
  const replication::OutwardCalls::Scope scope(calls_);
  const uint32_t rank = contribution.rank;
  std::optional<Error> error = table_.errorOf(rank, contribution.incarnation);
  if (!error) error = badEpoch(options_.host(), contribution.epoch, replication::workerName(rank));
  if (!error && mayPark() && !values_.initialised()) {
    ParkedCall call{.incarnation = contribution.incarnation};
    call.contribution = std::move(contribution);
    return waits_.park(rank, std::move(call), std::move(callback));
  }
  if (!error) error = values_.notReadyFor("a gradient");
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  if (contribution.epoch != values_.epoch()) return answerWentBack(rank, std::move(callback));
  gradient_bytes_ += contribution.gradient.size_bytes();
  workers_.noteTimes(contribution);
  WorkerNotes& notes = table_.notes(rank);
  notes.evaluates_since.reset();
  if (std::exchange(notes.has_trained, true))
    return values_.coordinator().push(std::move(contribution), std::move(callback));
  // A refused gradient doesn't make its worker one that trains.
  values_.coordinator().push(std::move(contribution), [&notes, callback = std::move(callback)](
                                                          replication::PushAnswer answer) {
    if (std::holds_alternative<Error>(answer)) notes.has_trained = false;
    callback(std::move(answer));
  });
}

void Shard::pullAside(uint32_t rank, Incarnation incarnation, Aside what,
                      replication::PushCallback callback) {
  const replication::OutwardCalls::Scope scope(calls_);
  std::optional<Error> error = table_.errorOf(rank, incarnation);
  if (!error && mayPark() && !values_.initialised())
    return waits_.park(rank, {.incarnation = incarnation, .aside = what}, std::move(callback));
  if (!error) error = values_.notReadyFor("a pull beside training");
  if (error) return calls_.add([callback = std::move(callback), error] { callback(*error); });
  waits_.awaitAside(rank, what, std::move(callback));
  values_.coordinator().callAfter(replication::UpdateEnd::kRunning, [this] { answerAside(); });
}

void Shard::answerAside() {
  for (ShardWaits::Beside::Call& call : waits_.takeAside()) {
    replication::PushAnswer answer =
        Error(ErrorCode::kBadConfig, fmt::format("{} keeps no moving averages; declare an "
                                                 "optimizer with moving_average",
                                                 options_.host().name()));
    const bool is_averages = call.detail == Aside::kAverages;
    if (std::shared_ptr<const arena::ParameterVersion> values =
            is_averages ? values_.store().copyAverages() : values_.store().readable()) {
      replication::StepState state;
      state.global_step = values->version();
      state.epoch = values_.epoch();
      answer = replication::PushReply{state, std::move(values)};
    }
    calls_.add(
        [callback = std::move(call.callback), answer = std::move(answer)] { callback(answer); });
  }
}

void Shard::shareParameters() {
  if (values_.isDeclared()) values_.store().shareParameters(options_.workers);
}

// ---- waits

// Extends deadlines while a worker evaluates, a replica is missing, or a live chief brings values,
// for it may read them for long. After its loss, calls wait for its return.
void Shard::holdDeadlines() {
  const bool initialised = values_.initialised();
  if (initialised && table_.whoEvaluates()) values_.coordinator().extendDeadlines();
  const bool without_end = recovery_.isGoingBack() || awaitsReplica();
  if (without_end || (!initialised && table_.isPresent(kChief.index))) waits_.holdParked();
  if (without_end && initialised) values_.coordinator().extendDeadlines();
}

std::string Shard::awaitedText() const {
  if (!waits_.anyParked() && recovery_.isGoingBack())
    return fmt::format("{} to take {} back to saved values", kChief.name(), options_.host().name());
  if (waits_.anyParked())
    return fmt::format("{} to bring the values of {} back", kChief.name(), options_.host().name());
  if (!values_.isDeclared()) return "";
  const replication::Coordinator& coordinator = values_.coordinator();
  const bool anybody_waits = values_.initialised() && coordinator.status().callers_waiting > 0;
  // The deadlines are extended meanwhile, so the coordinator finds no call that has waited long.
  if (awaitsReplica() && anybody_waits) return backup_.awaitedText();
  const std::optional<uint32_t> evaluates = table_.whoEvaluates();
  const auto& replication = declaration()->replication;
  const bool may_wait =
      replication::sharesSteps(replication) || replication::staleness(replication);
  if (evaluates && may_wait && !coordinator.awaitsReturn() && anybody_waits &&
      clock_.now() - table_.notes(*evaluates).evaluates_since.value() > replication::kSaidAfter)
    return replication::workerName(*evaluates) + " to finish its evaluation";
  return coordinator.awaitedText();
}

AwaitedEvent Shard::awaited() const {
  const bool is_return = waits_.anyParked() || recovery_.isGoingBack() || awaitsReplica() ||
                         table_.whoEvaluates() ||
                         (values_.isDeclared() && values_.coordinator().awaitsReturn());
  return {awaitedText(), is_return};
}

void Shard::failAll(const Error& error) {
  const replication::OutwardCalls::Scope scope(calls_);
  waits_.dropAll(error);
  readers_.failAll(error);
  backup_.failWaiting(error);
  if (values_.isDeclared()) values_.coordinator().failAll(error);
}

void Shard::tick() {
  const replication::OutwardCalls::Scope scope(calls_);
  workers_.tick();
  readers_.tick();
  holdDeadlines();
  waits_.expire([this] {
    const std::string absent = table_.membership().missingText();
    return values_.emptyText() + (absent.empty() ? "" : "; absent: " + absent);
  });
  if (values_.isDeclared()) values_.coordinator().tick();
}

ShardStatus Shard::status() const {
  const replication::Membership& members = table_.membership();
  ShardStatus status;
  status.declared = values_.isDeclared();
  status.initialised = values_.initialised();
  status.all_finished = members.allFinished();
  for (uint32_t rank = 0; rank < options_.workers; ++rank)
    status.members.push_back(members.member(rank));
  status.missing = members.missingText();
  status.trains = table_.anybodyTrains() || recovery_.hasRefilled();
  status.gradient_bytes = gradient_bytes_;
  status.straggler = workers_.straggler();
  status.epoch = values_.epoch();
  if (status.declared) status.steps = declaration()->steps;
  if (status.initialised) {
    status.coordinator = values_.coordinator().status();
    status.saved = cuts_.isSaved();
  }
  status.callers_waiting = waits_.size() + workers_.waiting() + status.coordinator.callers_waiting;
  return status;
}

}  // namespace dtf::shard
