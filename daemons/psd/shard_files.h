#pragma once

// A shard to and from the files of a checkpoint.

#include <filesystem>
#include <vector>

#include "common/base/file_system.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/checkpoint/snapshot_folder.h"
#include "common/ps/shard.h"

namespace dtf::psd {

// Whose files they are, and where.
struct CheckpointOptions {
  std::filesystem::path folder;  // <run_dir>/checkpoints, the same files as the chief's
  uint32_t ps_task = 0;
  uint32_t workers = 0;
  FileSystem* file_system = nullptr;
  std::string job{};
  checkpoint::SnapshotPlace snapshots{};  // without a folder: none are kept
};

// What ps `ps_task` captured, as its file holds it.
// Borrows: the memory of `captured`.
// Errors: kTrainingFailed naming the variable or slot that holds a NaN or an infinity.
std::vector<checkpoint::TensorPart> savedParts(uint32_t ps_task,
                                               const ps::Shard::Captured& captured);
// `file` with what is beside it.
checkpoint::SavedShard savedShard(checkpoint::ShardFile file, const ps::Shard::Captured& captured);

// A shard's state at that cut, for its values to be filled in, and what is then to be done.
// Errors: kBadData when `head` is of no checkpoint.
ps::RestoredShard roomFor(const checkpoint::CutHead& head, uint32_t ps_task,
                          const ps::ModelDeclaration& declaration, uint32_t workers);
void completeRestored(ps::RestoredShard& restored, uint32_t ps_task,
                      const ps::ModelDeclaration& declaration);

// Writes what ps `ps_task` captured as its file in `folder`, durably.
// Blocks: on the disk.
// Errors: those of checkpoint::writeShard; those of savedParts(), and then nothing is written.
checkpoint::SavedShard saveShard(FileSystem& file_system, const std::filesystem::path& folder,
                                 uint32_t ps_task, const ps::Shard::Captured& captured);

// Reads the part of ps `ps_task` under `declaration` from the checkpoint in `folder`, whichever ps
// tasks wrote it.
// Blocks: on the disk.
// Errors: kBadData naming file and tensor, kBadConfig for a variable that the checkpoint doesn't
// have.
ps::RestoredShard restoreShard(FileSystem& file_system, const std::filesystem::path& folder,
                               uint32_t ps_task, const ps::ModelDeclaration& declaration,
                               uint32_t workers);

// Keeps what ps `ps_task` captured as snapshot `name` of this process's host, and of the ones
// before it only `keep`.
// Blocks: while it is copied.
// Errors: those of SnapshotFolder::write; kTrainingFailed as saveShard().
checkpoint::KeptSnapshot saveSnapshot(checkpoint::SnapshotFolder& folder,
                                      const checkpoint::SnapshotName& name,
                                      const std::optional<checkpoint::SnapshotName>& keep,
                                      const CheckpointOptions& options,
                                      const ps::Shard::Captured& captured);

// Reads it back, for a shard of the same model.
// Blocks: while it is copied.
// Errors: kBadData when it is damaged, or of another model.
ps::RestoredShard restoreSnapshot(const checkpoint::SnapshotFolder& folder,
                                  const checkpoint::SnapshotName& name,
                                  const CheckpointOptions& options,
                                  const ps::ModelDeclaration& declaration);

}  // namespace dtf::psd
