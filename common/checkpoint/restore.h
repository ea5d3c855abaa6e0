#pragma once

// Reads any range of any variable from a checkpoint, whichever ps tasks wrote it. Opens only the
// files that hold wanted elements, reads each stored tensor at most once, front to back, and
// verifies its checksum.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "common/base/file_system.h"
#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {

// Elements [begin, begin + count) of a variable or slot, and their destination: `out` or `take`.
// Borrows: `out`, room for `count` floats.
struct WantedPart {
  std::string name;
  uint64_t begin = 0;
  uint64_t count = 0;
  float* out = nullptr;
  // In place of `out`: receives each element once, from `from` on, at most 1 MiB at a time, in the
  // order of the files. A stored tensor's checksum is verified after its last elements are passed.
  std::function<void(uint64_t from, std::span<const float> values)> take{};
};

// Reads folder/manifest.json.
// Errors: kBadData.
Manifest readManifest(FileSystem& file_system, const std::filesystem::path& folder);

class StayingFiles;

// Fills every `out` and calls every `take`. Reads shards that stay with the ps through `staying`,
// whose find() has just found them; without it, from this host's disk.
// Blocks: on the disk, and as long as `take` and `staying` do.
// Errors: kBadData naming the file and the tensor when a checksum or a size is wrong (the elements
// filled so far are then garbage); kBadConfig when the checkpoint has no such variable or range;
// the errors of `take` and `staying`.
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
