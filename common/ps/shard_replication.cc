// Shard, fourth part: its replica on another ps, and its return from there.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/ps/replication_rules.h"
#include "common/ps/shard.h"

namespace dtf::ps {

void Shard::onReplicaBackup() {
  const OutwardCalls::Scope scope(calls_);
  DTF_CHECK(replica_ != nullptr);
  ++backups_met_;
  if (replicator_) replicator_->onBackup();
}

void Shard::onReplicaHeard(uint64_t ticket) {
  const OutwardCalls::Scope scope(calls_);
  if (replicator_) replicator_->onHeard(ticket);
  if (replicator_ && replicator_->isWhole()) answerReplicaWaiter(Arrived{});
}

// How long it may take is the caller's to say.
void Shard::awaitReplica(Incarnation chief, uint64_t epoch, WaitCallback callback) {
  const OutwardCalls::Scope scope(calls_);
  checkChief(chief, "a query for its replica");
  DTF_CHECK(callback != nullptr);
  answerReplicaWaiter(gaveWay(kChief.index));
  replica_waiter_ = std::move(callback);
  if (!replicator_) return answerReplicaWaiter(noReplica());
  if (epoch != epoch_)
    return answerReplicaWaiter(
        Error(ErrorCode::kUnavailable,
              fmt::format("ps/{} is on epoch {}: no replica of epoch {} is made", options_.ps_task,
                          epochNumber(epoch_), epochNumber(epoch))));
  if (replicator_->isWhole()) answerReplicaWaiter(Arrived{});
}

void Shard::answerReplicaWaiter(const WaitAnswer& answer) {
  if (!replica_waiter_) return;
  calls_.add([callback = std::exchange(replica_waiter_, nullptr), answer] { callback(answer); });
}

Error Shard::noReplica() const {
  return {ErrorCode::kUnavailable, fmt::format("no replica is kept of ps/{}", options_.ps_task)};
}

// Nothing that is sent to a lost backup is answered before its return.
bool Shard::awaitsReplica() const {
  if (!replicator_ || !initialised()) return false;
  return !replicator_->isWhole() || (replica_->isAway() && replicator_->awaitsAnswer());
}

std::string Shard::awaitedReplicaText() const {
  DTF_CHECK(awaitsReplica());
  const uint32_t backup = backupOf(options_.ps_task, options_.ps_tasks);
  if (replica_->isAway()) return fmt::format("the replica on ps/{}, which is lost", backup);
  return fmt::format("ps/{} to take the replica of ps/{}", backup, options_.ps_task);
}

void Shard::refill(Incarnation chief, uint64_t epoch, WaitCallback callback) {
  const OutwardCalls::Scope scope(calls_);
  checkChief(chief, "its replica");
  requireEpoch(epoch, "its replica");
  DTF_CHECK(callback != nullptr);
  if (replica_ == nullptr) throw noReplica();
  if (epoch_ == epoch) return calls_.add([callback = std::move(callback)] { callback(Arrived{}); });
  replica_->fetch([this, epoch, met = backups_met_, callback = std::move(callback)](
                      const std::variant<ReplicaSeed, Error>& fetched) {
    const OutwardCalls::Scope answer_scope(calls_);
    WaitAnswer answer = Arrived{};
    try {
      if (const Error* error = std::get_if<Error>(&fetched)) throw Error(*error);
      takeReplica(epoch, std::get<ReplicaSeed>(fetched), met);
    } catch (const Error& error) {
      answer = error;
    }
    calls_.add([callback, answer] { callback(answer); });
  });
}

// `backups_met`: when it was asked for.
void Shard::takeReplica(uint64_t epoch, const ReplicaSeed& seed, uint64_t backups_met) {
  if (epoch_ == epoch) return;  // it was asked for twice
  if (initialised() || !store_ || seed.state.epoch != epoch)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("ps/{} is on epoch {}, and its replica on {}: epoch {} can't go on",
                            options_.ps_task, epochNumber(epoch_), epochNumber(seed.state.epoch),
                            epochNumber(epoch)));
  const size_t own = 1 + store_->slotCount();
  const bool has_previous = seed.arenas.size() == own + 1;
  const auto in_last =
      std::count_if(seed.state.memory.workers.begin(), seed.state.memory.workers.end(),
                    [](const PushMemory::Worker& worker) { return (worker.sets & 1) != 0; });
  const uint32_t needed = declaration_->replication.replicas_to_aggregate;
  const bool sets_fit = !hasBackupWorkers(declaration_->replication) || in_last == 0 ||
                        (in_last == needed && seed.state.version > 0);
  bool fits = (seed.arenas.size() == own || has_previous) && sets_fit &&
              seed.state.memory.workers.size() == options_.workers &&
              (!has_previous || seed.state.version > 0);
  for (const std::span<const float>& arena : seed.arenas) fits &= arena.size() == elements();
  if (!fits)
    throw Error(
        ErrorCode::kBadData,
        fmt::format("the replica of ps/{} doesn't fit the declared model", options_.ps_task));
  // Others may be a step further already.
  const Beginning beginning{epoch, seed.state.origin, seed.state.origin_cut, /*at_rest=*/false,
                            backups_met > 0 && backups_met == backups_met_};
  take(beginning, [&] {
    store_->restore(seed.arenas[0], std::span(seed.arenas).subspan(1, own - 1), seed.state.clock,
                    seed.state.version,
                    has_previous ? std::optional(seed.arenas[own]) : std::nullopt,
                    {seed.ownerOf(0), has_previous ? seed.ownerOf(own) : nullptr});
    coordinator_->resume(seed.state.memory);
    awaitAbsent();
    refilled_ = true;
  });
}

// A worker that was lost together with the process before this one never comes here: a step that
// needs it waits for its return, as for that of one that was lost here.
void Shard::awaitAbsent() {
  DTF_CHECK(coordinator_ != nullptr);
  if (!sharesSteps(declaration_->replication)) return;
  for (uint32_t rank = 0; rank < options_.workers; ++rank)
    if (membership_.member(rank).state == MemberState::kAwaited)
      coordinator_->lost(rank, fmt::format("{} was absent when ps/{} came back", workerName(rank),
                                           options_.ps_task));
}

}  // namespace dtf::ps
