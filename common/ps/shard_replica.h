#pragma once

// The receiving half of `durability: replica` (replicator.h): what a ps keeps of the shard of
// another. It runs the same updates by the same kernels, so it holds the same bits: parameters,
// slots, clock, and what is remembered of the pushes. When a new process of that ps comes, empty,
// it gives all back.
//
//   seed -> update* -> [the process of the ps is lost] -> fetch, by its successor -> update*

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/ids.h"
#include "common/ps/answer.h"
#include "common/ps/parameter_client.h"
#include "common/ps/replicator.h"
#include "common/ps/updater.h"

namespace dtf::ps {

// Owns: the replica's store; updates that wait to be applied, kQueuedMax at most.
// Borrows: `runner`, `calls` (must outlive this).
// Threads: loop-thread only.
// Blocks: while a small shard is updated, and while a seed is copied.
// Errors: kUnavailable "fenced: ..." to a process of the ps that was replaced, and when there is
// nothing to give back; kBadData for what can't follow what came before.
class ShardReplica {
 public:
  // Updates that were answered and are not applied yet. The answer to one more waits.
  static constexpr size_t kQueuedMax = 2;

  // `ps_task`: whose shard it is.
  ShardReplica(uint32_t ps_task, uint32_t workers, UpdateRunner& runner, OutwardCalls& calls)
      : ps_task_(ps_task), workers_(workers), runner_(runner), calls_(calls) {}

  // A process of the ps is there. One that comes later replaces the one before, unless it was
  // started before that.
  void meet(Incarnation primary);

  // Takes the place of what was kept. Copies the arenas.
  void seed(Incarnation primary, const ModelDeclaration& declaration, const ReplicaSeed& seed);
  // Calls `received` once the update is kept; an update that is kept already is answered again.
  void update(Incarnation primary, const ReplicaUpdate& update, std::function<void()> received);
  // Calls `fetched` when all that is kept is applied. The arenas may be read until `primary` says
  // its next update.
  void fetch(Incarnation primary, std::function<void(ReplicaSeed)> fetched);

  // Of the whole replica that is kept; 0: none.
  uint64_t epoch() const { return store_ ? state_.epoch : 0; }
  // Of the newest update that is kept.
  uint64_t version() const { return state_.version; }

 private:
  void check(Incarnation primary) const;
  void validate(const ModelDeclaration& declaration, const ReplicaSeed& seed) const;
  void applyNext();
  void giveBack();

  const uint32_t ps_task_;
  const uint32_t workers_;  // of the job
  UpdateRunner& runner_;
  OutwardCalls& calls_;
  Incarnation primary_;               // the newest that was met; 0: none
  std::deque<Incarnation> replaced_;  // by it
  ReplicaState state_;                // with the updates that wait
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<Updater> updater_;
  std::deque<ReplicaUpdate> queue_;
  std::function<void()> received_;  // of the newest update, when it is one too many
  std::function<void(ReplicaSeed)> fetched_;
};

}  // namespace dtf::ps
