#include "common/checkpoint/staying_shards.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"

namespace dtf::checkpoint {

namespace {

constexpr std::string_view kAttempt = ".tmp-";

// Makes `folder` and its missing parents, durably. Another process may make the same folder at the
// same time. Syncs the name of an existing folder, too: the process that made it may have been
// killed before its sync.
void makeFolders(FileSystem& file_system, const std::filesystem::path& folder,
                 const std::filesystem::path& run_dir) {
  const std::filesystem::path parent = folder.parent_path();
  if (folder.empty() || parent == folder) return;
  const bool is_there = file_system.exists(folder);
  if (!is_there) {
    makeFolders(file_system, parent, run_dir);
    try {
      file_system.makeFolder(folder);
    } catch (const Error&) {
      if (!file_system.exists(folder)) throw;
    }
  }
  try {
    file_system.syncFolder(parent.empty() ? "." : parent);
  } catch (const Error&) {
    // This user may not be allowed to open the parent of an existing run directory.
    const bool is_ours = folder.native().size() > run_dir.native().size();
    if (is_ours || !is_there) throw;
  }
}

// Ignores an error of `remove` if another ps of this host has removed `path` meanwhile.
template <typename Remove>
void removeIfThere(FileSystem& file_system, const std::filesystem::path& path, Remove remove) {
  try {
    remove();
  } catch (const Error&) {
    if (file_system.exists(path)) throw;
  }
}

uint64_t checksumOfFile(const ReadableFile& file) {
  Checksum checksum;
  std::vector<char> buffer(std::min(file.size(), kChecksumChunkBytes));
  for (uint64_t at = 0; at < file.size();) {
    const uint64_t bytes = std::min<uint64_t>(file.size() - at, buffer.size());
    file.read(at, buffer.data(), bytes);
    checksum.update(buffer.data(), bytes);
    at += bytes;
  }
  return checksum.value();
}

}  // namespace

std::string stayingName(std::string_view attempt) {
  const size_t at = attempt.find(kAttempt);
  DTF_CHECK(at != std::string_view::npos);
  return std::string(attempt.substr(0, at)) + "-" +
         std::string(attempt.substr(at + kAttempt.size()));
}

std::filesystem::path stayingFolder(const std::filesystem::path& checkpoints) {
  return checkpoints.parent_path() / "shards";
}

std::filesystem::path makeStaying(FileSystem& file_system, const std::filesystem::path& shards,
                                  const std::string& name) {
  makeFolders(file_system, shards / name, shards.parent_path());
  return shards / name;
}

void dropStaying(FileSystem& file_system, const std::filesystem::path& shards,
                 const std::string& name) {
  const std::filesystem::path folder = shards / name;
  std::vector<FolderEntry> entries;
  removeIfThere(file_system, folder, [&] { entries = file_system.list(folder); });
  for (const FolderEntry& entry : entries) {
    const std::filesystem::path path = folder / entry.name;
    removeIfThere(file_system, path, [&] {
      entry.is_folder ? file_system.removeFolder(path) : file_system.removeFile(path);
    });
  }
  removeIfThere(file_system, folder, [&] { file_system.removeFolder(folder); });
  // Also makes durable a removal by a process that died before its sync.
  if (file_system.exists(shards)) file_system.syncFolder(shards);
}

FoundShard findStaying(FileSystem& file_system, const std::filesystem::path& path,
                       const ShardFile& expected) {
  if (!file_system.exists(path)) return {};
  try {
    const auto file = file_system.open(path);
    if (file->size() != expected.bytes)
      return {Standing::kDamaged, path.string() + ": the file has " + std::to_string(file->size()) +
                                      " bytes, the manifest says " +
                                      std::to_string(expected.bytes)};
    const uint64_t checksum = checksumOfFile(*file);
    if (checksum != expected.checksum)
      return {Standing::kDamaged, path.string() + ": its checksum is " + hexOf(checksum) +
                                      ", the manifest says " + hexOf(expected.checksum) +
                                      ": the data are damaged"};
    return {Standing::kWhole};
  } catch (const Error& error) {
    return {Standing::kDamaged, error.message()};
  }
}

std::filesystem::path shardPath(FileSystem& file_system, const std::filesystem::path& folder,
                                const Manifest& manifest, const ShardFile& shard) {
  std::filesystem::path beside = folder / shard.file;
  if (manifest.stays_in.empty() || file_system.exists(beside)) return beside;
  const std::filesystem::path here =
      stayingFolder(folder.parent_path()) / manifest.stays_in / shard.file;
  return file_system.exists(here) ? here : beside;
}

std::string elsewhereText(const std::filesystem::path& folder, const Manifest& manifest,
                          size_t shard) {
  const ShardFile& file = manifest.shards.at(shard);
  return file.file + " stays with ps/" + std::to_string(shard) +
         (file.host.empty() ? "" : " on " + file.host) + ", which wrote it to shards/" +
         manifest.stays_in + " below its run_dir: copy it to " + folder.string();
}

}  // namespace dtf::checkpoint
