#pragma once

// Transfers the shards of a checkpoint between the ps and a chief that has the files on its disk
// (`checkpoint: {gather: true}`). wire/checkpoint/shard_calls.h implements it over the network;
// train/gathered_files.h reads and writes the files.
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

// Most bytes of a shard in one message. At most two are under way, so a heartbeat on the same
// connection waits for no more.
inline constexpr uint64_t kPieceBytesMax = uint64_t{512} << 10;

// The state of a checkpoint beside its values.
struct CutHead {
  uint64_t global_step = 0;
  std::vector<uint64_t> worker_batches;  // as Manifest's
  std::vector<ClockState> clocks;        // likewise
};

// A position in one of a shard's arenas.
struct ArenaPlace {
  uint32_t arena = 0;   // 0: the parameters, then the optimizer's slots in their order
  uint64_t offset = 0;  // in elements from the arena's beginning
};

// Threads: one at a time, beside the training thread of the same worker.
// Blocks: each call until the ps has answered, or its deadline.
// Errors: kUnavailable, kDeadline naming the ps, also for bytes damaged on the way: the whole
// transfer may be tried again. A ps's own error.
class ShardTransfer {
 public:
  virtual ~ShardTransfer() = default;

  // Makes every ps hold its capture of `position` in memory, readable as the bytes of its file,
  // until release(), another stage(), or the end of its connection.
  // Errors: as CheckpointClient::save(), without those of the disk.
  virtual std::vector<SavedShard> stage(const CutPosition& position) = 0;
  // Returns bytes of the file that ps `ps_task` staged, from `offset` on: kPieceBytesMax, or fewer
  // at the end of `file_bytes`. Front to back is fastest: the next piece is requested ahead.
  virtual std::string fetch(uint32_t ps_task, uint64_t offset, uint64_t file_bytes) = 0;
  // Makes the ps free their staged files. `saved`: the files are in a checkpoint.
  virtual void release(bool saved) = 0;

  // Makes every ps reserve memory for the values of a cut, beside its present values.
  virtual void expect(const CutHead& head) = 0;
  // Sends values of the cut, at most kPieceBytesMax, each element once. Returns when they are under
  // way.
  virtual void bring(uint32_t ps_task, const ArenaPlace& place, std::span<const float> values) = 0;
  // Waits until every ps has its whole part; then these values become their state.
  virtual void commit(const GoingBack& target) = 0;
};

}  // namespace dtf::checkpoint
