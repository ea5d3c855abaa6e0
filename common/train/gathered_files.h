#pragma once

// The files of a checkpoint that only the chief's disk has (`checkpoint: {gather: true}`): it
// fetches the shards of all ps, writes and reads them itself, and brings each ps its values. These
// it brings, too, where the shards stay with the ps that wrote them.

#include <filesystem>
#include <vector>

#include "common/base/cut_position.h"
#include "common/base/file_system.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/checkpoint/staying_files.h"
#include "common/ps/parameter_client.h"

namespace dtf::train {

// Writes what every ps captured at `position` as its file into `folder`, durably, one ps after the
// other. Training goes on; the ps keep their captures until they are told to let them go.
// Blocks: on the network and the disk, piece by piece.
// Errors: those of `transfer`; kCannotWrite; kBadData when what a ps says of its shard can't be of
// this model; kUnavailable when the bytes that came are not those that the ps has.
std::vector<checkpoint::SavedShard> gatherShards(FileSystem& file_system,
                                                 checkpoint::ShardTransfer& transfer,
                                                 const std::filesystem::path& folder,
                                                 const CutPosition& position,
                                                 const ps::ModelDeclaration& declaration);

// Brings every ps its part of the checkpoint in `folder`, whichever ps tasks wrote it: each stored
// tensor is read once, over `staying` where the shards stay with the ps. It becomes their state
// with `transfer.commit()`.
// Blocks: as above.
// Errors: those of `transfer`; those of checkpoint::readParts().
void bringShards(FileSystem& file_system, checkpoint::ShardTransfer& transfer,
                 const std::filesystem::path& folder, const checkpoint::Manifest& manifest,
                 const ps::ModelDeclaration& declaration,
                 checkpoint::StayingFiles* staying = nullptr);

}  // namespace dtf::train
