#pragma once

// Captures of the shard, for the services of all kinds of checkpoints.

#include <kj/async.h>

#include <functional>

#include "common/checkpoint/checkpoint_client.h"
#include "common/host/shard_host.h"

namespace dtf::host {

// Returns the capture at `position`; the shard releases it.
// Threads: control loop.
// Errors: as ShardCuts::captured(), through the promise.
kj::Promise<shard::CapturedShard> takeCapture(ShardHost& host, Incarnation chief,
                                              CutPosition position);

// Takes the capture at `position`, runs `write` with it on the disk loop, and marks the shard as
// saved.
// Threads: control loop.
// Errors: as takeCapture() and `write`.
kj::Promise<checkpoint::SavedShard> saveCapture(
    ShardHost& host, Incarnation chief, CutPosition position,
    std::function<checkpoint::SavedShard(const shard::CapturedShard&)> write);

}  // namespace dtf::host
