#pragma once

// A capture of the shard for a checkpoint, as the services of all kinds of checkpoints take it.

#include <kj/async.h>

#include <functional>

#include "common/checkpoint/checkpoint_client.h"
#include "common/host/shard_host.h"

namespace dtf::host {

// Takes the capture at `position` from the shard, which keeps it no longer.
// Threads: control loop.
// Errors: those of ShardCuts::captured(), as promises.
kj::Promise<shard::CapturedShard> takeCapture(ShardHost& host, Incarnation chief,
                                              CutPosition position);

// The same, written by `write` on the disk loop; the shard then counts as saved.
// Errors: also those of `write`.
kj::Promise<checkpoint::SavedShard> saveCapture(
    ShardHost& host, Incarnation chief, CutPosition position,
    std::function<checkpoint::SavedShard(const shard::CapturedShard&)> write);

}  // namespace dtf::host
