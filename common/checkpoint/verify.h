#pragma once

// Verifies a checkpoint. Reports damage by file, and by tensor where it is in one.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file_system.h"
#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {

enum class VerifyDepth {
  kSizes,  // the manifest and the sizes of the files: costs next to nothing
  kFull,   // reads every byte: finds every flipped bit
};

struct Problem {
  std::string file;        // "shard-0-of-2.safetensors"
  std::string tensor;      // its name in the file; empty: not in a tensor
  std::string reason;      // a sentence that names the file
  bool forbidden = false;  // this user may not read the file: it may be whole
};

struct Verification {
  std::optional<Manifest> manifest;  // nullopt: it can't be read or is damaged
  std::vector<Problem> problems;     // none: the checkpoint is whole
  bool whole() const { return manifest.has_value() && problems.empty(); }
};

class StayingFiles;

// Verifies the checkpoint in `folder`, .../step-120. Damage is returned, not thrown. Shards that
// stay with the ps are verified through `staying`, with kSizes not at all; without `staying`, on
// this host's disk.
// Errors: the errors of `staying`.
Verification verifyCheckpoint(FileSystem& file_system, const std::filesystem::path& folder,
                              VerifyDepth depth, StayingFiles* staying = nullptr);

}  // namespace dtf::checkpoint
