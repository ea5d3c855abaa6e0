#pragma once

// The sending half of a shard's replica (replicator.h), for as long as the process of its ps lives:
// the replicator is made anew with each store. The receiving half is shard_replica.h.

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/optimizer/parameter_store.h"
#include "common/replication/answer.h"
#include "common/replication/replicator.h"
#include "common/replication/waiting_calls.h"
#include "common/shard/shard_options.h"

namespace dtf::shard {

// Owns: the replicator, the chief's call that waits for it.
// Borrows: `link`, `calls`, `clock` (must outlive this); `link` may be null: no replica is kept.
// Threads: loop-thread only.
// Blocks: never.
class ShardBackup {
 public:
  ShardBackup(const ShardOptions& options, replication::ReplicaLink* link,
              replication::OutwardCalls& calls, const Clock& clock);

  // ---- calls of the link to the other ps

  // Notes another process of the backup, which holds nothing of this shard.
  void onBackup();
  void onHeard(uint64_t ticket);

  // ---- calls of the shard

  bool isKept() const { return link_ != nullptr; }
  // Precondition: isKept().
  replication::ReplicaLink& link() const { return *link_; }
  // Makes the replicator of a new store, if a replica is kept. None is open.
  void open(const optimizer::ParameterStore& store);
  void close();
  // Returns null when no replica is kept, or none is open.
  replication::Replicator* replicator() const { return replicator_.get(); }
  // Returns how many processes of the backup were met.
  uint64_t met() const { return met_; }

  // Whether updates of an initialised store wait for the backup. A lost one answers no message
  // before its return.
  bool isAwaited() const;
  // Returns the awaited event: "the replica on ps/1, which is lost".
  std::string awaitedText() const;

  // Answers once the backup holds the same values as this shard, or with the error of
  // failWaiting(). An earlier call gives way. Precondition: a replicator is open.
  void awaitWhole(replication::WaitCallback callback);
  void failWaiting(const Error& error) { waiting_.answerAll(error); }
  // Returns the error of a request for a replica that nobody keeps.
  Error notKept() const;

 private:
  const TaskId host_;    // of the shard
  const TaskId keeper_;  // of its replica
  replication::ReplicaLink* const link_;
  replication::OutwardCalls& calls_;
  uint64_t met_ = 0;
  uint64_t tickets_ = 0;
  std::unique_ptr<replication::Replicator> replicator_;
  replication::WaitingCalls<replication::WaitAnswer> waiting_;  // the chief's
};

}  // namespace dtf::shard
