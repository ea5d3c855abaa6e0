#pragma once

// The PsCheckpoint interface (common/wire/ps.capnp) over a shard and the run directory's
// checkpoints.

#include <filesystem>

#include "common/base/file_system.h"
#include "common/wire/ps.capnp.h"
#include "daemons/psd/shard_host.h"

namespace dtf::psd {

struct CheckpointOptions {
  std::filesystem::path folder;  // <run_dir>/checkpoints, the same files as the chief's
  uint32_t ps_task = 0;
  uint32_t workers = 0;
  FileSystem* file_system = nullptr;
};

// For the chief's process `chief`. Control loop only; disk work is done on the host's disk thread.
// Borrows: `host`, `options`.
schema::PsCheckpoint::Client makeCheckpoint(ShardHost& host, const CheckpointOptions& options,
                                            Incarnation chief);

}  // namespace dtf::psd
