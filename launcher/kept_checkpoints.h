#pragma once

// The checkpoints that a run keeps on this host, for `dtf-launch status`.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/cluster/spec.h"

namespace dtf::launcher {

// Value type.
struct KeptCheckpoint {
  uint64_t step = 0;
  std::string saved;     // wall clock; empty: its manifest can't be read
  uint64_t bytes = 0;    // of its shards, also of those that stay with the ps
  bool is_best = false;  // by checkpoint.keep_best
};

// By step. What can't be listed or read is left out: a job that runs removes old ones meanwhile.
// Blocks: on the disk, for the manifests alone.
std::vector<KeptCheckpoint> keptCheckpoints(const cluster::JobSpec& job,
                                            const std::filesystem::path& run_dir);

// "step 40, 2026-03-01T10:11:12.345+01:00, 92.1 KiB, the best", the newest ones, and how many older
// ones there are.
std::vector<std::string> checkpointRows(const std::vector<KeptCheckpoint>& checkpoints);

// A list of {step, saved, bytes, best}.
Json checkpointsJson(const std::vector<KeptCheckpoint>& checkpoints);

}  // namespace dtf::launcher
