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

// Returns the tensors of a captured shard's file.
// Borrows: the memory of `captured`.
// Errors: kTrainingFailed naming the variable or slot that holds a NaN or an infinity.
std::vector<checkpoint::TensorPart> savedParts(NamedShard shard,
                                               const shard::CapturedShard& captured);
// Returns `file` with the values of the capture that the manifest holds: the optimizer's clock, and
// the time for which the capture stalled the shard.
checkpoint::SavedShard savedShard(checkpoint::ShardFile file, const shard::CapturedShard& captured);

// Returns a shard's state at the cut `head`, with memory for the values. The caller fills them in,
// and then calls completeRestored().
// Errors: kBadData if `head` belongs to no checkpoint.
shard::RestoredShard roomFor(const checkpoint::CutHead& head, uint32_t ps_task,
                             const arena::ModelDeclaration& declaration, uint32_t workers);
// Fills in the moving averages that no checkpoint holds.
void completeRestored(shard::RestoredShard& restored, uint32_t ps_task,
                      const arena::ModelDeclaration& declaration);

// Writes a captured shard as its file in `folder`, durably.
// Blocks: on the disk.
// Errors: as checkpoint::writeShard(); as savedParts(), before anything is written.
checkpoint::SavedShard saveShard(FileSystem& file_system, const std::filesystem::path& folder,
                                 NamedShard shard, const shard::CapturedShard& captured);

// Reads the part of ps `ps_task` under `declaration` from the checkpoint in `folder`, regardless of
// the ps tasks that wrote it.
// Blocks: on the disk.
// Errors: kBadData with file and tensor; kBadConfig for a variable that the checkpoint lacks.
shard::RestoredShard restoreShard(FileSystem& file_system, const std::filesystem::path& folder,
                                  uint32_t ps_task, const arena::ModelDeclaration& declaration,
                                  uint32_t workers);

// Writes a captured shard as snapshot `name` on this process's host, and removes all earlier
// snapshots except `keep`.
// Blocks: while the shard is copied.
// Errors: as SnapshotFolder::write(); kTrainingFailed as savedParts().
checkpoint::KeptSnapshot saveSnapshot(checkpoint::SnapshotFolder& folder,
                                      const checkpoint::CutName& name,
                                      const std::optional<checkpoint::CutName>& keep,
                                      const CheckpointOptions& options,
                                      const shard::CapturedShard& captured);

// Reads the snapshot `name` for a shard of the same model.
// Blocks: while the shard is copied.
// Errors: kBadData if it is missing or damaged, or of another model.
shard::RestoredShard restoreSnapshot(const checkpoint::SnapshotFolder& folder,
                                     const checkpoint::CutName& name,
                                     const CheckpointOptions& options,
                                     const arena::ModelDeclaration& declaration);

}  // namespace dtf::host
