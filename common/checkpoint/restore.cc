#include "common/checkpoint/restore.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/checkpoint/staying_files.h"

namespace dtf::checkpoint {

namespace {

constexpr uint64_t kChunkElements = 1 << 18;  // 1 MiB

struct Overlap {
  uint64_t begin = 0;
  uint64_t end = 0;  // <= begin: none
};

Overlap overlapOf(uint64_t begin, uint64_t count, const WantedPart& wanted) {
  return {std::max(begin, wanted.begin), std::min(begin + count, wanted.begin + wanted.count)};
}

using ByName = std::map<std::string, std::vector<const WantedPart*>, std::less<>>;

uint64_t elementsOf(const Manifest& manifest, const std::string& name) {
  for (const VariableInfo& variable : manifest.variables) {
    if (variable.name == name) return static_cast<uint64_t>(variable.shape.elements());
    for (const std::string& slot : variable.slots)
      if (name.size() == variable.name.size() + 1 + slot.size() &&
          name.starts_with(variable.name) && name.ends_with("/" + slot))
        return static_cast<uint64_t>(variable.shape.elements());
  }
  throw Error(ErrorCode::kBadConfig, "the checkpoint of step " +
                                         std::to_string(manifest.global_step) +
                                         " holds no variable " + name);
}

ByName group(const Manifest& manifest, std::span<const WantedPart> wanted) {
  ByName groups;
  for (const WantedPart& part : wanted) {
    const uint64_t elements = elementsOf(manifest, part.name);
    if (part.begin > elements || part.count > elements - part.begin)
      throw Error(ErrorCode::kBadConfig, "elements from " + std::to_string(part.begin) + " of " +
                                             part.name + " were requested, it has " +
                                             std::to_string(elements));
    DTF_CHECK(part.count == 0 || (part.out != nullptr) != (part.take != nullptr));
    if (part.count > 0) groups[part.name].push_back(&part);
  }
  return groups;
}

// Reads whole stored parts, because a checksum covers a whole part, and keeps the wanted elements.
class PartReader {
 public:
  // Returns the number of wanted elements filled.
  uint64_t read(const ReadableFile& file, const std::filesystem::path& path, const StoredPart& part,
                const std::vector<const WantedPart*>& wanted) {
    uint64_t filled = 0;
    checksum_.reset();
    for (uint64_t done = 0; done < part.count;) {
      const uint64_t count = std::min(part.count - done, kChunkElements);
      const uint64_t begin = part.begin + done;
      float* chunk = target(begin, count, wanted);
      file.read(part.offset + done * sizeof(float), chunk, count * sizeof(float));
      checksum_.update(chunk, count * sizeof(float));
      for (const WantedPart* want : wanted) filled += copy(chunk, begin, count, *want);
      done += count;
    }
    if (checksum_.value() != part.checksum)
      throw Error(ErrorCode::kBadData,
                  path.string() + ": elements from " + std::to_string(part.begin) + " of tensor " +
                      part.name + " are damaged: their checksum is " + hexOf(checksum_.value()) +
                      ", the manifest says " + hexOf(part.checksum));
    return filled;
  }

 private:
  // Returns where to read a chunk: into an `out` that wants all of it, else into the buffer.
  float* target(uint64_t begin, uint64_t count, const std::vector<const WantedPart*>& wanted) {
    DTF_CHECK(count <= kChunkElements);
    for (const WantedPart* want : wanted) {
      if (want->out == nullptr) continue;
      const Overlap overlap = overlapOf(begin, count, *want);
      if (overlap.begin == begin && overlap.end == begin + count)
        return want->out + (begin - want->begin);
    }
    if (buffer_.size() < count) buffer_.resize(count);
    return buffer_.data();
  }

  static uint64_t copy(const float* chunk, uint64_t begin, uint64_t count, const WantedPart& want) {
    const Overlap overlap = overlapOf(begin, count, want);
    if (overlap.end <= overlap.begin) return 0;
    DTF_CHECK(overlap.begin >= want.begin && overlap.begin >= begin);
    const float* from = chunk + (overlap.begin - begin);
    if (want.take) {
      want.take(overlap.begin, {from, overlap.end - overlap.begin});
      return overlap.end - overlap.begin;
    }
    float* out = want.out + (overlap.begin - want.begin);
    if (out != from) std::memcpy(out, from, (overlap.end - overlap.begin) * sizeof(float));
    return overlap.end - overlap.begin;
  }

  std::vector<float> buffer_;
  Checksum checksum_;
};

std::vector<const WantedPart*> takersOf(const StoredPart& part, const ByName& groups) {
  std::vector<const WantedPart*> takers;
  const auto found = groups.find(part.name);
  if (found == groups.end()) return takers;
  for (const WantedPart* want : found->second) {
    const Overlap overlap = overlapOf(part.begin, part.count, *want);
    if (overlap.end > overlap.begin) takers.push_back(want);
  }
  return takers;
}

std::unique_ptr<ReadableFile> openShard(FileSystem& file_system, const std::filesystem::path& path,
                                        const ShardFile& shard) {
  auto file = file_system.open(path);
  if (file->size() != shard.bytes)
    throw Error(ErrorCode::kBadData, path.string() + ": it has " + std::to_string(file->size()) +
                                         " bytes, the manifest says " +
                                         std::to_string(shard.bytes));
  return file;
}

}  // namespace

Manifest readManifest(FileSystem& file_system, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestFile;
  return decodeManifest(readWhole(file_system, path, kManifestBytesMax), path.string());
}

void readParts(FileSystem& file_system, const std::filesystem::path& folder,
               const Manifest& manifest, std::span<const WantedPart> wanted,
               StayingFiles* staying) {
  const bool over_staying = staying != nullptr && !manifest.stays_in.empty();
  const ByName groups = group(manifest, wanted);
  uint64_t missing = 0;
  for (const WantedPart& part : wanted) missing += part.count;
  PartReader reader;
  for (const ShardFile& shard : manifest.shards) {
    const std::filesystem::path path = shardPath(file_system, folder, manifest, shard);
    std::unique_ptr<ReadableFile> file;
    for (const StoredPart& part : shard.parts) {
      const std::vector<const WantedPart*> takers = takersOf(part, groups);
      if (takers.empty()) continue;
      if (!file)
        file = over_staying ? staying->open(manifest, shard) : openShard(file_system, path, shard);
      missing -= reader.read(*file, path, part, takers);
    }
  }
  // Can't happen with a decoded manifest, but the caller's may have another origin.
  if (missing != 0)
    throw Error(ErrorCode::kBadData, folder.string() + ": the manifest does not cover " +
                                         std::to_string(missing) + " of the requested elements");
}

}  // namespace dtf::checkpoint
