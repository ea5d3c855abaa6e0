#pragma once

// The shards of a checkpoint on their way between the ps and a chief that has the files on its own
// disk (`checkpoint: {gather: true}`). Over the network it is wire/shard_calls.h; who reads and
// writes the files is train/gathered_files.h.
//
//   save:    stage() -> fetch()... of every ps -> the chief commits -> release(true)
//   restore: expect() -> bring()... to every ps -> commit()

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/cut_position.h"
#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {

struct SavedShard;
struct GoingBack;

// At most so many bytes of a shard travel in one message: a heartbeat on the same connection waits
// for no more than two of them.
inline constexpr uint64_t kPieceBytesMax = uint64_t{512} << 10;

// What a checkpoint says beside its values.
struct CutHead {
  uint64_t global_step = 0;
  std::vector<uint64_t> worker_batches;  // as Manifest's
  std::vector<ClockState> clocks;        // likewise
};

// Elements of one of a shard's arenas.
struct ArenaPlace {
  uint32_t arena = 0;   // 0: the parameters, then the optimizer's slots in their order
  uint64_t offset = 0;  // of the first, in elements from the arena's beginning
};

// Threads: one at a time, beside the training thread of the same worker.
// Blocks: each call until who is asked has answered, or its deadline.
// Errors: kUnavailable, kDeadline naming the ps, also for bytes that were damaged on the way: the
// whole transfer may be tried again. Those of the ps.
class ShardTransfer {
 public:
  virtual ~ShardTransfer() = default;

  // Every ps keeps what it captured at `position` as the bytes of its file, in memory, until
  // release(), another stage(), or the end of its connection.
  // Errors: those of CheckpointClient::save, but of the disk.
  virtual std::vector<SavedShard> stage(const CutPosition& position) = 0;
  // Bytes of that file of ps `ps_task`, from `offset` on: kPieceBytesMax, or what is left of
  // `file_bytes`. Best asked for front to back.
  virtual std::string fetch(uint32_t ps_task, uint64_t offset, uint64_t file_bytes) = 0;
  // The ps let go of what they keep. `saved`: it is in a checkpoint.
  virtual void release(bool saved) = 0;

  // Every ps makes room for the values of a cut, beside those that it holds.
  virtual void expect(const CutHead& head) = 0;
  // Of such values, kPieceBytesMax at most; each element once. Returns when they are under way.
  virtual void bring(uint32_t ps_task, const ArenaPlace& place, std::span<const float> values) = 0;
  // When every ps has all of its part, it becomes their state.
  virtual void commit(const GoingBack& target) = 0;
};

}  // namespace dtf::checkpoint
