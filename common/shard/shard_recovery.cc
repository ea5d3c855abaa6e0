#include "common/shard/shard_recovery.h"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/replication/replication_rules.h"
#include "common/replication/step_shares.h"

namespace dtf::shard {

namespace {

// Returns whether the last step can consist of the workers that the replica names, if it names any.
bool lastSetFits(const replication::ReplicaState& state, const arena::ModelDeclaration& declaration,
                 uint32_t workers) {
  if (!replication::hasBackupWorkers(declaration.replication)) return true;
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < state.memory.workers.size(); ++rank)
    if ((state.memory.workers[rank].sets & 1) != 0) ranks.push_back(rank);
  if (ranks.empty()) return true;
  return state.step > 0 &&
         replication::StepShares(declaration, workers).canBeSet(state.step - 1, ranks);
}

}  // namespace

ShardRecovery::ShardRecovery(const ShardOptions& options, const Clock& clock,
                             replication::OutwardCalls& calls, WorkerTable& workers,
                             ShardValues& values, ShardBackup& backup, ShardCuts& cuts, Take take)
    : options_(options),
      clock_(clock),
      calls_(calls),
      workers_(workers),
      values_(values),
      backup_(backup),
      cuts_(cuts),
      take_(std::move(take)) {}

// ---- going back

void ShardRecovery::expectRestore(Incarnation chief) {
  requireChief(workers_, values_, chief, "a request to read saved values");
  expected_ = {chief, clock_.now()};
}

bool ShardRecovery::isGoingBack() const {
  return expected_ && workers_.isPresent(kChief.index) &&
         workers_.membership().member(kChief.index).incarnation == expected_->chief &&
         clock_.now() < replication::deadlineAfter(expected_->since, kBringBackMax);
}

bool ShardRecovery::restore(Incarnation chief, const RestoredShard& state) {
  const replication::OutwardCalls::Scope scope(calls_);
  requireChief(workers_, values_, chief, "a request to restore saved values");
  requireEpoch(options_.host(), state.epoch, "the saved values");
  if (values_.epoch() == state.epoch) return false;
  if (values_.epoch() > state.epoch)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{} is on epoch {} already: it can't go back to epoch {}",
                            options_.host().name(), replication::epochNumber(values_.epoch()),
                            replication::epochNumber(state.epoch)));
  take_({state}, [&] {
    std::vector<std::span<const float>> slots;
    for (const Buffer& slot : state.slots)
      slots.emplace_back(slot.as<float>(), slot.bytes() / sizeof(float));
    values_.store().restore({state.values.as<float>(), state.values.bytes() / sizeof(float)}, slots,
                            state.clock, state.step);
    values_.coordinator().restore(state.position);
    if (state.origin == checkpoint::EpochOrigin::kCheckpoint) cuts_.noteSaved(state.step);
  });
  return true;
}

// ---- the replica

void ShardRecovery::awaitReplica(Incarnation chief, uint64_t epoch,
                                 replication::WaitCallback callback) {
  const replication::OutwardCalls::Scope scope(calls_);
  requireChief(workers_, values_, chief, "a query for its replica");
  DTF_CHECK(callback != nullptr);
  std::optional<Error> error;
  if (!backup_.isKept())
    error = backup_.notKept();
  else if (epoch != values_.epoch())
    error = Error(
        ErrorCode::kUnavailable,
        fmt::format("{} is on epoch {}: no replica of epoch {} is made", options_.host().name(),
                    replication::epochNumber(values_.epoch()), replication::epochNumber(epoch)));
  if (!error) return backup_.awaitWhole(std::move(callback));
  backup_.failWaiting(replication::gaveWay(kChief.index, options_.host()));
  calls_.add([callback = std::move(callback), error] { callback(*error); });
}

void ShardRecovery::refill(Incarnation chief, uint64_t epoch, replication::WaitCallback callback) {
  const replication::OutwardCalls::Scope scope(calls_);
  requireChief(workers_, values_, chief, "its replica");
  requireEpoch(options_.host(), epoch, "its replica");
  DTF_CHECK(callback != nullptr);
  if (!backup_.isKept()) throw backup_.notKept();
  if (values_.epoch() == epoch)
    return calls_.add([callback = std::move(callback)] { callback(replication::Arrived{}); });
  backup_.link().fetch([this, epoch, met = backup_.met(), callback = std::move(callback)](
                           const std::variant<replication::ReplicaSeed, Error>& fetched) {
    const replication::OutwardCalls::Scope answer_scope(calls_);
    replication::WaitAnswer answer = replication::Arrived{};
    try {
      if (const Error* error = std::get_if<Error>(&fetched)) throw Error(*error);
      takeReplica(epoch, std::get<replication::ReplicaSeed>(fetched), met);
    } catch (const Error& error) {
      answer = error;
    }
    calls_.add([callback, answer] { callback(answer); });
  });
}

// `backups_met`: at the time of the request.
void ShardRecovery::takeReplica(uint64_t epoch, const replication::ReplicaSeed& seed,
                                uint64_t backups_met) {
  if (values_.epoch() == epoch) return;  // requested twice
  if (values_.initialised() || !values_.isDeclared() || seed.state.epoch != epoch)
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("{} is on epoch {}, and its replica on {}: epoch {} can't go on",
                    options_.host().name(), replication::epochNumber(values_.epoch()),
                    replication::epochNumber(seed.state.epoch), replication::epochNumber(epoch)));
  const size_t own = 1 + values_.store().slotCount();
  const bool has_previous = seed.arenas.size() == own + 1;
  bool fits = (seed.arenas.size() == own || has_previous) &&
              seed.state.memory.workers.size() == options_.workers &&
              (!has_previous || seed.state.step > 0) &&
              lastSetFits(seed.state, *values_.declaration(), options_.workers);
  for (const std::span<const float>& arena : seed.arenas)
    fits &= arena.size() == values_.elements();
  if (!fits)
    throw Error(ErrorCode::kBadData, fmt::format("the replica of {} doesn't fit the declared model",
                                                 options_.host().name()));
  // Others may be a step further already.
  const bool has_replica = backups_met > 0 && backups_met == backup_.met();
  take_({{seed.state}, has_replica}, [&] {
    values_.store().restore(seed.arenas[0], std::span(seed.arenas).subspan(1, own - 1),
                            seed.state.clock, seed.state.step,
                            has_previous ? std::optional(seed.arenas[own]) : std::nullopt,
                            {seed.ownerOf(0), has_previous ? seed.ownerOf(own) : nullptr});
    values_.coordinator().resume(seed.state.memory);
    awaitAbsent();
    has_refilled_ = true;
  });
}

// Reports workers that have not joined as lost, so that a step that needs them waits for their
// return: they may have been lost together with the process before.
void ShardRecovery::awaitAbsent() {
  if (!replication::sharesSteps(values_.declaration()->replication)) return;
  for (uint32_t rank = 0; rank < options_.workers; ++rank)
    if (workers_.isIn(rank, replication::MemberState::kAwaited))
      values_.coordinator().lost(
          rank, fmt::format("{} was absent when {} came back", replication::workerName(rank),
                            options_.host().name()));
}

}  // namespace dtf::shard
