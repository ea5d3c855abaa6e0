#pragma once

// The calls of checkpoint::StayingShards, as promises, on the control connections.

#include <kj/async.h>

#include <string>
#include <vector>

#include "common/checkpoint/staying_shards.h"
#include "common/wire/checkpoint/checkpoint_calls.h"

namespace dtf::wire {

// The chief's calls for shards that stay with their ps.
// Borrows: `checkpoint` (must outlive this).
// Threads: loop-thread only.
// Errors: as promises; see checkpoint::StayingShards.
class StayingCalls {
 public:
  explicit StayingCalls(CheckpointCalls& checkpoint) : checkpoint_(checkpoint) {}

  kj::Promise<std::vector<checkpoint::SavedShard>> save(const std::string& name,
                                                        const CutPosition& position);
  // `wanted`: for each ps.
  kj::Promise<std::vector<std::vector<checkpoint::FoundShard>>> find(
      const std::string& name, const std::vector<std::vector<checkpoint::ShardFile>>& wanted);
  kj::Promise<std::string> fetch(uint32_t ps_task, const checkpoint::StayingPiece& piece);
  kj::Promise<void> drop(const std::string& name);

 private:
  schema::PsStaying::Client ps(uint32_t ps_task);

  CheckpointCalls& checkpoint_;
};

}  // namespace dtf::wire
