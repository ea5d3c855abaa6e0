#pragma once

// A shard to and from the files of a checkpoint.

#include <filesystem>

#include "common/base/file_system.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/ps/shard.h"

namespace dtf::psd {

// Writes what ps `ps_task` captured as its file in `folder`, durably.
// Blocks: on the disk.
// Errors: those of checkpoint::writeShard; kTrainingFailed naming the variable or slot that holds a
// NaN or an infinity, and then nothing is written.
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

}  // namespace dtf::psd
