#pragma once

// Reading a checkpoint back: any range of any variable, whatever ps tasks wrote it. A reader opens
// only the files that hold what it wants, reads each tensor in them at most once, front to back,
// and compares the checksum of every one that it touches.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "common/base/file_system.h"
#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {

// Elements [begin, begin + count) of a variable or slot, for one of two takers.
// Borrows: `out`, room for `count` floats.
struct WantedPart {
  std::string name;
  uint64_t begin = 0;
  uint64_t count = 0;
  float* out = nullptr;
  // In place of `out`: is given elements of it from `from` on, at most 1 MiB at a time and each
  // once, in the order of the files. A checksum is compared when all that it covers was given.
  std::function<void(uint64_t from, std::span<const float> values)> take{};
};

// folder/manifest.json.
// Errors: kBadData.
Manifest readManifest(FileSystem& file_system, const std::filesystem::path& folder);

class StayingFiles;

// Fills every `out`, gives every `take` its elements. Shards that stay with the ps are read where
// they are on this disk, or over `staying`, which has just found them.
// Blocks: on the disk, and as long as `take` and `staying` do.
// Errors: kBadData naming the file and the tensor when a checksum or a size is wrong (what was
// filled so far is then garbage); kBadConfig when the checkpoint has no such variable or range;
// those of `take` and `staying`.
void readParts(FileSystem& file_system, const std::filesystem::path& folder,
               const Manifest& manifest, std::span<const WantedPart> wanted,
               StayingFiles* staying = nullptr);

inline void readPart(FileSystem& file_system, const std::filesystem::path& folder,
                     const Manifest& manifest, const std::string& name, uint64_t begin,
                     uint64_t count, float* out) {
  const WantedPart wanted{name, begin, count, out};
  readParts(file_system, folder, manifest, {&wanted, 1});
}

}  // namespace dtf::checkpoint
