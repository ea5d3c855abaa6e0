#include "common/checkpoint/staying_shards.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"

namespace dtf::checkpoint {

namespace {

constexpr std::string_view kAttempt = ".tmp-";

// As mkdir -p. Another process may make the same folder at the same time.
void makeFolders(FileSystem& file_system, const std::filesystem::path& folder) {
  if (folder.empty() || file_system.exists(folder)) return;
  const std::filesystem::path parent = folder.parent_path();
  makeFolders(file_system, parent);
  try {
    file_system.makeFolder(folder);
  } catch (const Error&) {
    if (!file_system.exists(folder)) throw;
  }
  file_system.syncFolder(parent.empty() ? "." : parent);
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
  makeFolders(file_system, shards / name);
  return shards / name;
}

void dropStaying(FileSystem& file_system, const std::filesystem::path& shards,
                 const std::string& name) {
  const std::filesystem::path folder = shards / name;
  for (int tries = 1; file_system.exists(folder); ++tries) {
    try {
      removeTree(file_system, folder);
      file_system.syncFolder(shards);
    } catch (const Error&) {
      // What another ps of this host has removed meanwhile.
      constexpr int kTriesMax = 3;
      if (tries == kTriesMax && file_system.exists(folder)) throw;
    }
  }
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
