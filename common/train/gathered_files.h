#pragma once

// The files of a checkpoint with `gather: true`, on the chief's disk alone. The chief fetches the
// shards of all ps, writes and reads the files, and sends each ps its values. It also sends the
// values if the shards stay with the ps that wrote them.

#include <filesystem>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/base/cut_position.h"
#include "common/base/file_system.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/checkpoint/staying_files.h"

namespace dtf::train {

// Writes the capture of every ps at `position` to its file in `folder`, durably, one ps after
// another. Training goes on; each ps keeps its capture until ShardTransfer::release().
// Blocks: on the network and the disk, piece by piece.
// Errors: as ShardTransfer; kCannotWrite; kBadData if the name or size that a ps reports for its
// shard does not fit the model; kUnavailable if the received bytes don't match the checksum that
// the ps reports. `hosts`: of the shards, for messages.
std::vector<checkpoint::SavedShard> gatherShards(FileSystem& file_system,
                                                 checkpoint::ShardTransfer& transfer,
                                                 const std::filesystem::path& folder,
                                                 const CutPosition& position,
                                                 const arena::ModelDeclaration& declaration,
                                                 const ShardHosts& hosts = {});

// Sends every ps its part of the checkpoint in `folder`, whichever ps tasks wrote it. Reads each
// stored tensor once, through `staying` if the shards stay with the ps. ShardTransfer::commit()
// then makes it the state of the ps.
// Blocks: as gatherShards().
// Errors: as ShardTransfer and checkpoint::readParts().
void bringShards(FileSystem& file_system, checkpoint::ShardTransfer& transfer,
                 const std::filesystem::path& folder, const checkpoint::Manifest& manifest,
                 const arena::ModelDeclaration& declaration,
                 checkpoint::StayingFiles* staying = nullptr);

}  // namespace dtf::train
