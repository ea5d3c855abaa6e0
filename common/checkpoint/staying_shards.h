#pragma once

// Shards that stay with the ps that wrote them (`checkpoint: {stay: true}`): each ps has its files
// on its own host, the chief has the manifests, which say where they are and what is in them.
//
//   the chief's run_dir/checkpoints/step-120/manifest.json      "stays_in": "step-120-1f3a.7"
//   a ps's run_dir/shards/step-120-1f3a.7/shard-1-of-2.safetensors
//
// The folder is called after the chief's attempt (checkpoint_folder.h), as no other will ever be.
// So nothing is renamed on a ps, and the chief's rename is the commit for all of them; what is of
// an attempt that came to nothing, or of a checkpoint that goes, is removed on the chief's word,
// and the chief's own folder goes last: that is what remembers it over a crash.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/cut_position.h"
#include "common/base/file_system.h"
#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {

struct SavedShard;

// Of the attempt "step-120.tmp-1f3a.7": "step-120-1f3a.7".
std::string stayingName(std::string_view attempt);
// <run_dir>/shards, of the run directory whose checkpoints are in `checkpoints`.
std::filesystem::path stayingFolder(const std::filesystem::path& checkpoints);

// ---- on the host of a ps; Blocks: on the disk.

// Makes `shards`/`name`, with the folders above it that are missing, for writeShard(), durably.
// Others may do so at the same time. Errors: kCannotWrite.
std::filesystem::path makeStaying(FileSystem& file_system, const std::filesystem::path& shards,
                                  const std::string& name);
// Removes it; none is there: nothing. Others may do so at the same time.
// Errors: kCannotWrite.
void dropStaying(FileSystem& file_system, const std::filesystem::path& shards,
                 const std::string& name);

enum class Standing : uint8_t { kAbsent, kWhole, kDamaged };
struct FoundShard {
  Standing standing = Standing::kAbsent;
  std::string reason{};  // why it is damaged
};
// Reads every byte of `path`, which should be `expected`.
FoundShard findStaying(FileSystem& file_system, const std::filesystem::path& path,
                       const ShardFile& expected);

// ---- for whoever has the manifest, in `folder`

// Where the file of that shard is on this disk: beside the manifest, or in the run directory's
// shards; where it is in neither, beside the manifest.
std::filesystem::path shardPath(FileSystem& file_system, const std::filesystem::path& folder,
                                const Manifest& manifest, const ShardFile& shard);
// "shard-1-of-2.safetensors stays with ps/1 on node2, ..., copy it to <folder>".
std::string elsewhereText(const std::filesystem::path& folder, const Manifest& manifest,
                          size_t shard);

// A part of one file.
struct StayingPiece {
  std::string name;  // of the folder
  std::string file;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // kPieceBytesMax at most
};

// All ps of a job, as the chief sees them that has the manifests. Over the network it is
// wire/staying_calls.h; what the chief makes of it is staying_files.h.
// Threads: one at a time.
// Blocks: each call until who is asked has answered, or its deadline.
// Errors: kUnavailable, kDeadline naming the ps; those of the ps.
class StayingShards {
 public:
  virtual ~StayingShards() = default;

  // Every ps writes what it captured at `position` into its folder `name`, durably.
  // Errors: those of CheckpointClient::save.
  virtual std::vector<SavedShard> save(const std::string& name, const CutPosition& position) = 0;
  // Per ps, what it finds of the files that are wanted of it, in folder `name`, read whole.
  virtual std::vector<std::vector<FoundShard>> find(
      const std::string& name, const std::vector<std::vector<ShardFile>>& wanted) = 0;
  virtual std::string fetch(uint32_t ps_task, const StayingPiece& piece) = 0;
  // No ps has that folder any more.
  virtual void drop(const std::string& name) = 0;
};

}  // namespace dtf::checkpoint
