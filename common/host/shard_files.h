#pragma once

// A shard to and from the files of a checkpoint.

#include <filesystem>
#include <vector>

#include "common/base/file_system.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/checkpoint/snapshot_folder.h"
#include "common/shard/shard.h"

namespace dtf::host {

// A shard of the job, and the task that hosts it, for messages.
struct NamedShard {
  NamedShard(uint32_t of, TaskId host_of) : index(of), host(host_of) {}
  NamedShard(uint32_t of) : NamedShard(of, {JobKind::kPs, of}) {}  // NOLINT: a ps's
  uint32_t index;
  TaskId host;
};

// The owner of checkpoint files, and their place.
struct CheckpointOptions {
  std::filesystem::path folder;  // <run_dir>/checkpoints, the same files as the chief's
  uint32_t ps_task = 0;
  uint32_t workers = 0;
  FileSystem* file_system = nullptr;
  std::string job{};
  checkpoint::SnapshotPlace snapshots{};  // without a folder: none are kept
  ShardHosts hosts{};                     // of all shards, for messages

  NamedShard shard() const { return {ps_task, hosts.of(ps_task)}; }
};

// Returns a captured shard as its file holds it.
// Borrows: the memory of `captured`.
// Errors: kTrainingFailed naming the variable or slot that holds a NaN or an infinity.
std::vector<checkpoint::TensorPart> savedParts(NamedShard shard,
                                               const shard::CapturedShard& captured);
// `file` with what is beside it.
checkpoint::SavedShard savedShard(checkpoint::ShardFile file, const shard::CapturedShard& captured);

// A shard's state at that cut, for its values to be filled in, and what is then to be done.
// Errors: kBadData when `head` is of no checkpoint.
shard::RestoredShard roomFor(const checkpoint::CutHead& head, uint32_t ps_task,
                             const arena::ModelDeclaration& declaration, uint32_t workers);
void completeRestored(shard::RestoredShard& restored, uint32_t ps_task,
                      const arena::ModelDeclaration& declaration);

// Writes a captured shard as its file in `folder`, durably.
// Blocks: on the disk.
// Errors: those of checkpoint::writeShard; those of savedParts(), and then nothing is written.
checkpoint::SavedShard saveShard(FileSystem& file_system, const std::filesystem::path& folder,
                                 NamedShard shard, const shard::CapturedShard& captured);

// Reads the part of ps `ps_task` under `declaration` from the checkpoint in `folder`, whichever ps
// tasks wrote it.
// Blocks: on the disk.
// Errors: kBadData naming file and tensor, kBadConfig for a variable that the checkpoint doesn't
// have.
shard::RestoredShard restoreShard(FileSystem& file_system, const std::filesystem::path& folder,
                                  uint32_t ps_task, const arena::ModelDeclaration& declaration,
                                  uint32_t workers);

// Keeps a captured shard as snapshot `name` of this process's host, and of the snapshots before it
// only `keep`.
// Blocks: while it is copied.
// Errors: those of SnapshotFolder::write; kTrainingFailed as saveShard().
checkpoint::KeptSnapshot saveSnapshot(checkpoint::SnapshotFolder& folder,
                                      const checkpoint::CutName& name,
                                      const std::optional<checkpoint::CutName>& keep,
                                      const CheckpointOptions& options,
                                      const shard::CapturedShard& captured);

// Reads it back, for a shard of the same model.
// Blocks: while it is copied.
// Errors: kBadData when it is damaged, or of another model.
shard::RestoredShard restoreSnapshot(const checkpoint::SnapshotFolder& folder,
                                     const checkpoint::CutName& name,
                                     const CheckpointOptions& options,
                                     const arena::ModelDeclaration& declaration);

}  // namespace dtf::host
