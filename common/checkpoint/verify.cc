#include "common/checkpoint/verify.h"

#include <algorithm>
#include <map>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/checkpoint/restore.h"
#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/staying_files.h"

namespace dtf::checkpoint {

namespace {

using Elements = std::map<std::string, uint64_t, std::less<>>;

// Returns the number of elements of each variable and slot: a stored tensor's name depends on it.
Elements elementsOf(const Manifest& manifest) {
  Elements elements;
  for (const VariableInfo& variable : manifest.variables) {
    const auto count = static_cast<uint64_t>(variable.shape.elements());
    elements[variable.name] = count;
    for (const std::string& slot : variable.slots) elements[variable.name + "/" + slot] = count;
  }
  return elements;
}

bool isForbidden(const Error& error) {
  return error.code() == ErrorCode::kPermission;
}

class ShardVerifier {
 public:
  ShardVerifier(FileSystem& file_system, const std::filesystem::path& folder,
                const Manifest& manifest, const ShardFile& shard, const Elements& elements,
                std::vector<Problem>& problems)
      : file_system_(file_system),
        path_(shardPath(file_system, folder, manifest, shard)),
        shard_(shard),
        elements_(elements),
        problems_(problems) {}

  void verify(VerifyDepth depth) {
    try {
      const auto file = file_system_.open(path_);
      if (file->size() != shard_.bytes)
        wrongSize(file->size());
      else if (depth == VerifyDepth::kFull)
        readAll(*file);
    } catch (const Error& error) {
      problems_.push_back({shard_.file, {}, error.message(), isForbidden(error)});
    }
  }

 private:
  std::string nameOf(const StoredPart& part) const {
    const auto found = elements_.find(part.name);
    DTF_CHECK(found != elements_.end());  // decodeManifest() has checked it
    return storedName(part.name, part.begin, part.count, found->second);
  }

  void add(const std::string& tensor, const std::string& reason) {
    problems_.push_back(
        {shard_.file, tensor,
         path_.string() + ": " + (tensor.empty() ? "" : "tensor '" + tensor + "': ") + reason});
  }

  void wrongSize(uint64_t size) {
    std::string tensor;  // in which a truncated file ends
    for (const StoredPart& part : shard_.parts)
      if (part.offset <= size && size < part.offset + part.count * sizeof(float))
        tensor = nameOf(part);
    add(tensor, "the file has " + std::to_string(size) + " bytes, the manifest says " +
                    std::to_string(shard_.bytes));
  }

  void readAll(const ReadableFile& file) {
    const size_t before = problems_.size();
    const uint64_t data_begin = shard_.parts.empty() ? shard_.bytes : shard_.parts.front().offset;
    hash(file, 0, data_begin);
    for (const StoredPart& part : shard_.parts) {
      const uint64_t found = hash(file, part.offset, part.count * sizeof(float));
      if (found != part.checksum)
        add(nameOf(part), "its checksum is " + hexOf(found) + ", the manifest says " +
                              hexOf(part.checksum) + ": the data are damaged");
    }
    if (of_file_.value() == shard_.checksum)
      compareHeader(file);
    else if (problems_.size() == before)
      add({}, "the file's checksum is wrong but every tensor's is right: its header is damaged");
  }

  // Adds a section to the file's checksum and returns the section's checksum.
  uint64_t hash(const ReadableFile& file, uint64_t offset, uint64_t bytes) {
    Checksum section;
    for (const uint64_t end = offset + bytes; offset < end;) {
      const uint64_t n = std::min(end - offset, kChecksumChunkBytes);
      buffer_.resize(std::max<size_t>(buffer_.size(), n));
      file.read(offset, buffer_.data(), n);
      section.update(buffer_.data(), n);
      of_file_.update(buffer_.data(), n);
      offset += n;
    }
    return section.value();
  }

  // Compares the header with the manifest. The checksum only proves that the bytes are unchanged.
  void compareHeader(const ReadableFile& file) {
    const SafetensorsHeader header = readSafetensorsHeader(file, path_);
    bool same = header.entries.size() == shard_.parts.size();
    for (size_t i = 0; same && i < header.entries.size(); ++i)
      same = header.entries[i].name == nameOf(shard_.parts[i]) &&
             header.entries[i].dtype == "F32" &&
             header.data_begin + header.entries[i].begin == shard_.parts[i].offset;
    if (!same) add({}, "its header and the manifest name different tensors");
  }

  FileSystem& file_system_;
  const std::filesystem::path path_;
  const ShardFile& shard_;
  const Elements& elements_;
  std::vector<Problem>& problems_;
  Checksum of_file_;
  std::vector<char> buffer_;
};

}  // namespace

Verification verifyCheckpoint(FileSystem& file_system, const std::filesystem::path& folder,
                              VerifyDepth depth, StayingFiles* staying) {
  Verification result;
  try {
    result.manifest = readManifest(file_system, folder);
  } catch (const Error& error) {
    result.problems.push_back({kManifestFile, {}, error.message(), isForbidden(error)});
    return result;
  }
  const Manifest& manifest = *result.manifest;
  const bool stays = !manifest.stays_in.empty();
  if (stays && staying != nullptr) {
    if (depth == VerifyDepth::kFull) result.problems = staying->find(manifest);
    return result;
  }
  const Elements elements = elementsOf(manifest);
  for (size_t i = 0; i < manifest.shards.size(); ++i) {
    const ShardFile& shard = manifest.shards[i];
    if (stays && !file_system.exists(shardPath(file_system, folder, manifest, shard)))
      result.problems.push_back({shard.file, {}, elsewhereText(folder, manifest, i)});
    else
      ShardVerifier(file_system, folder, manifest, shard, elements, result.problems).verify(depth);
  }
  return result;
}

}  // namespace dtf::checkpoint
