#pragma once

// A shard on its way to or from a chief that has the files of the checkpoints on its own disk
// (common/checkpoint/shard_transfer.h).

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "common/checkpoint/checkpoint_client.h"
#include "common/checkpoint/shard_image.h"
#include "common/host/shard_files.h"
#include "common/shard/shard.h"

namespace dtf::host {

// The captured shard of one ps, as the bytes of its file.
// Owns: the capture.
// Threads: any number may read at the same time.
// Blocks: the constructor, while it computes the checksums.
class StagedShard {
 public:
  // Errors: as savedParts().
  StagedShard(NamedShard shard, const shard::CapturedShard& captured);

  const checkpoint::SavedShard& saved() const { return saved_; }
  uint64_t version() const { return captured_.capture->version; }
  void read(uint64_t offset, std::span<char> out) const { image_.read(offset, out); }

 private:
  const shard::CapturedShard captured_;
  const checkpoint::ShardImage image_;  // of captured_'s memory
  const checkpoint::SavedShard saved_;
};

// The state of a shard at a cut, which arrives piece by piece.
// Owns: the values.
// Threads: one at a time.
// Blocks: the constructor, while it allocates and fills the memory of the shard.
class BroughtShard {
 public:
  // Errors: as roomFor().
  BroughtShard(NamedShard shard, const arena::ModelDeclaration& declaration, uint32_t workers,
               const checkpoint::CutHead& head);

  // `values`: the bytes of float32 values, as in the message.
  // Errors: kBadData if they are no part of one of the shard's variables, or overlap earlier ones.
  void take(const checkpoint::ArenaPlace& place, std::string_view values);
  // The last call.
  // Errors: kBadData if some values have not come.
  shard::RestoredShard finish();

  const arena::ModelDeclaration& declaration() const { return declaration_; }

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // begin -> end, of elements of an arena

  const NamedShard shard_;
  const arena::ModelDeclaration declaration_;
  shard::RestoredShard restored_;
  // By arena:
  std::vector<Ranges> due_;
  std::vector<Ranges> filled_;  // adjacent ranges are merged
  uint64_t elements_due_ = 0;
  uint64_t elements_filled_ = 0;
};

}  // namespace dtf::host
