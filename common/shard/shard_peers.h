#pragma once

// Messages to a shard from the other ps of the job (replication::SyncPeers sends them).

#include <cstdint>
#include <vector>

#include "common/replication/coordinator.h"
#include "common/shard/shard_options.h"
#include "common/shard/shard_values.h"

namespace dtf::shard {

// A message of an epoch that this shard has left has no effect.
// Owns: reports of epochs that this shard has not reached, one for each ps and worker.
// Borrows: everything given to the constructor (must outlive this).
// Threads: loop-thread only.
// Blocks: never.
// Errors: kBadData for a breach of the protocol.
class ShardPeers {
 public:
  ShardPeers(const ShardOptions& options, replication::OutwardCalls& calls, ShardValues& values);

  // See SyncPeers.
  void onReceived(uint32_t ps_task, replication::StepName step, uint32_t rank);
  void onDecision(replication::StepName step, const std::vector<uint32_t>& ranks);
  // Reports the held gradients again over a new connection to ps/0, which may be a new process.
  void onLeaderLinked();
  // See Coordinator.
  void onFollowerLinked(uint32_t ps_task);

  // Takes the reports that came too early for the values before.
  void beginEpoch();

 private:
  struct EarlyReport {
    uint32_t ps_task = 0;
    replication::StepName step;
    uint32_t rank = 0;
  };

  const ShardOptions& options_;
  replication::OutwardCalls& calls_;
  ShardValues& values_;
  std::vector<EarlyReport> early_;
};

}  // namespace dtf::shard
