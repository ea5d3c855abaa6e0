#pragma once

// Is a checkpoint whole? Says what is wrong by file, and by tensor where the damage is in one.

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
  std::string reason;      // a sentence, with the file
  bool forbidden = false;  // this user may not read it, so nobody knows whether it is damaged
};

struct Verification {
  std::optional<Manifest> manifest;  // when it could be read
  std::vector<Problem> problems;     // none: the checkpoint is whole
  bool whole() const { return manifest.has_value() && problems.empty(); }
};

class StayingFiles;

// `folder` is the checkpoint's own: .../step-120. Never throws for what it finds there. Shards that
// stay with the ps are looked for on this disk, or `staying` asks for them; with kSizes nobody is
// asked.
// Errors: those of `staying`.
Verification verifyCheckpoint(FileSystem& file_system, const std::filesystem::path& folder,
                              VerifyDepth depth, StayingFiles* staying = nullptr);

}  // namespace dtf::checkpoint
