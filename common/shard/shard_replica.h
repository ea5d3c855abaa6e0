#pragma once

// The receiving half of `durability: replica` (replicator.h): the shard of another ps, kept here.
// It runs the same updates by the same kernels, so it holds the same bits: parameters, slots,
// clock, and memory of the pushes. An empty new process of that ps gets all of it back.
//
//   seed -> update* -> [the process of the ps is lost] -> fetch, by its successor -> update*

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "common/arena/model_declaration.h"
#include "common/base/ids.h"
#include "common/replication/answer.h"
#include "common/replication/replicator.h"
#include "common/replication/updater.h"

namespace dtf::shard {

// Owns: the replica's store; updates that wait to be applied, kQueuedMax at most.
// Borrows: `runner`, `calls` (must outlive this).
// Threads: loop-thread only.
// Blocks: while a small shard is updated, and while a seed is copied.
// Errors: kUnavailable "fenced: ..." to a process of the ps that was replaced, and when there is
// nothing to give back; kBadData for a message that can't follow the one before.
class ShardReplica {
 public:
  // Updates that were answered and are not applied yet; the answer to one more waits.
  static constexpr size_t kQueuedMax = 2;

  // `host`: of the shard `ps_task`, whose replica this is.
  ShardReplica(uint32_t ps_task, TaskId host, uint32_t workers, optimizer::UpdateRunner& runner,
               replication::OutwardCalls& calls)
      : ps_task_(ps_task), host_(host), workers_(workers), runner_(runner), calls_(calls) {}

  // Notes a process of the ps, which replaces the one before.
  // Errors: kUnavailable "fenced: ..." when it was replaced or started earlier itself.
  void meet(Incarnation primary);

  // Replaces the replica. Copies the arenas.
  void seed(Incarnation primary, const arena::ModelDeclaration& declaration,
            const replication::ReplicaSeed& seed);
  // Calls `received` once the update is kept; an update that is kept already is answered again.
  void update(Incarnation primary, const replication::ReplicaUpdate& update,
              std::function<void()> received);
  // Calls `fetched` when all kept updates are applied. The arenas may be read until the next update
  // of `primary`.
  void fetch(Incarnation primary, std::function<void(replication::ReplicaSeed)> fetched);

  // Returns the epoch of the whole replica that is kept; 0: none.
  uint64_t epoch() const { return store_ ? state_.epoch : 0; }
  // Returns the version after the newest update that is kept.
  uint64_t version() const { return state_.step; }

 private:
  void check(Incarnation primary) const;
  void validate(const arena::ModelDeclaration& declaration,
                const replication::ReplicaSeed& seed) const;
  void applyNext();
  void giveBack();

  const uint32_t ps_task_;
  const TaskId host_;
  const uint32_t workers_;  // of the job
  optimizer::UpdateRunner& runner_;
  replication::OutwardCalls& calls_;
  Incarnation primary_;               // the newest that was met; 0: none
  std::deque<Incarnation> replaced_;  // the processes before it
  replication::ReplicaState state_;   // includes the updates that wait
  std::unique_ptr<optimizer::ParameterStore> store_;
  std::unique_ptr<replication::Updater> updater_;
  std::deque<replication::ReplicaUpdate> queue_;
  std::function<void()> received_;  // of the newest update, when it is one too many
  std::function<void(replication::ReplicaSeed)> fetched_;
};

}  // namespace dtf::shard
