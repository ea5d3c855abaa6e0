#pragma once

// Shards that stay with the ps that wrote them (`checkpoint: {stay: true}`): each ps has its files
// on its own host; the chief has the manifests, which name the files and describe their contents.
//
//   the chief's run_dir/checkpoints/step-120/manifest.json      "stays_in": "step-120-1f3a.7"
//   a ps's run_dir/shards/step-120-1f3a.7/shard-1-of-2.safetensors
//
// The folder on the ps is named after the chief's attempt (checkpoint_folder.h), a name never used
// again. So a ps renames nothing: the chief's rename commits for all of them. To remove an attempt
// or an old checkpoint, the chief makes the ps drop their folders, and removes its own last: after
// a crash it names the shards that are left.

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

// Returns the folder's name for an attempt: "step-120-1f3a.7" for "step-120.tmp-1f3a.7".
std::string stayingName(std::string_view attempt);
// Returns <run_dir>/shards for <run_dir>/checkpoints.
std::filesystem::path stayingFolder(const std::filesystem::path& checkpoints);

// ---- on the host of a ps; Blocks: on the disk.

// Makes `shards`/`name` and its missing parents for writeShard(), durably. Several processes may do
// so at the same time. Errors: kCannotWrite.
std::filesystem::path makeStaying(FileSystem& file_system, const std::filesystem::path& shards,
                                  const std::string& name);
// Removes it, if it exists, durably. Several processes may do so at the same time.
// Errors: kCannotWrite.
void dropStaying(FileSystem& file_system, const std::filesystem::path& shards,
                 const std::string& name);

enum class Standing : uint8_t { kAbsent, kWhole, kDamaged };
struct FoundShard {
  Standing standing = Standing::kAbsent;
  std::string reason{};  // why it is damaged
};
// Reads every byte of `path` and compares size and checksum with `expected`.
FoundShard findStaying(FileSystem& file_system, const std::filesystem::path& path,
                       const ShardFile& expected);

// ---- for readers of a manifest, which is in `folder`

// Returns the path of the shard's file on this host: beside the manifest, or else in the run
// directory's `shards`. If it is in neither, the path beside the manifest.
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

// The chief's interface to the shards of all ps. wire/checkpoint/staying_calls.h implements it over
// the network; staying_files.h uses it. Threads: one at a time. Blocks: each call until the ps have
// answered, or its deadline. Errors: kUnavailable, kDeadline naming the ps; a ps's own error.
class StayingShards {
 public:
  virtual ~StayingShards() = default;

  // Makes every ps write its capture of `position` into its folder `name`, durably.
  // Errors: as CheckpointClient::save().
  virtual std::vector<SavedShard> save(const std::string& name, const CutPosition& position) = 0;
  // Makes each ps read its `wanted` files in its folder `name`. Returns the standing of each file,
  // by ps.
  virtual std::vector<std::vector<FoundShard>> find(
      const std::string& name, const std::vector<std::vector<ShardFile>>& wanted) = 0;
  virtual std::string fetch(uint32_t ps_task, const StayingPiece& piece) = 0;
  // Makes every ps remove its folder `name`.
  virtual void drop(const std::string& name) = 0;
};

}  // namespace dtf::checkpoint
