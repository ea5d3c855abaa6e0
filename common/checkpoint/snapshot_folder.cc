#include "common/checkpoint/snapshot_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/text.h"

namespace dtf::checkpoint {

namespace {

using Path = std::filesystem::path;

constexpr char kSharedMemory[] = "/dev/shm";
constexpr std::string_view kCutPrefix = "cut-";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::string_view kSumPrefix = "sum-worker-";

void requireOursAlone(const Path& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return;  // the caller's next access reports the reason
  const bool ours = S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && !(info.st_mode & 077);
  if (!ours)
    throw Error(ErrorCode::kCannotWrite,
                fmt::format("{} is no folder of this user with mode 0700, so another user could "
                            "change the snapshots in it: remove it",
                            folder.string()));
}

// Parses "cut-10002f3-120"; nullopt: a snapshot that is being written, or a foreign file.
std::optional<CutName> parseName(std::string_view text) {
  if (!text.starts_with(kCutPrefix)) return std::nullopt;
  text.remove_prefix(kCutPrefix.size());
  CutName name;
  const char* const end = text.data() + text.size();
  const auto epoch = std::from_chars(text.data(), end, name.epoch, 16);
  if (epoch.ec != std::errc() || epoch.ptr == end || *epoch.ptr != '-') return std::nullopt;
  const auto step = std::from_chars(epoch.ptr + 1, end, name.step);
  if (step.ec != std::errc() || step.ptr != end || name.epoch == 0) return std::nullopt;
  return name;
}

uint64_t partBytes(std::span<const TensorPart> parts) {
  uint64_t bytes = 0;
  for (const TensorPart& part : parts) bytes += part.count * sizeof(float);
  return bytes;
}

// Removes a snapshot's folder, or a foreign file or folder. Logs an error.
void removeEntry(FileSystem& file_system, const Path& folder, const FolderEntry& entry) {
  try {
    if (entry.is_folder)
      removeTree(file_system, folder / entry.name);
    else
      file_system.removeFile(folder / entry.name);
  } catch (const Error& error) {
    log::warning("event=snapshot_not_removed reason=\"{}\"", error.message());
  }
}

}  // namespace

SnapshotPlace sharedMemoryPlace(const std::string& job, const Path& run_dir) {
  DTF_CHECK(!job.empty() && job.find('/') == std::string::npos);
  const Path whole = std::filesystem::weakly_canonical(std::filesystem::absolute(run_dir));
  const std::string name =
      fmt::format("dtf-{}-{}-{}", ::geteuid(), job, hexOf(checksumOf(whole.string())));
  return {Path(kSharedMemory) / name, requireOursAlone,
          [](const Path& folder) { return std::filesystem::space(folder); }};
}

bool removeSnapshots(FileSystem& file_system, const SnapshotPlace& place) {
  DTF_CHECK(!place.folder.empty());
  try {
    if (!file_system.exists(place.folder)) return false;
    if (place.check) place.check(place.folder);
    for (const FolderEntry& ps : file_system.list(place.folder)) {
      const Path folder = place.folder / ps.name;
      if (ps.is_folder)
        for (const FolderEntry& entry : file_system.list(folder))
          removeEntry(file_system, folder, entry);
      removeEntry(file_system, place.folder, ps);
    }
    file_system.removeFolder(place.folder);
  } catch (const Error& error) {
    log::warning("event=snapshots_not_removed reason=\"{}\"", error.message());
  }
  return true;
}

Path hostSumFile(const SnapshotPlace& place, uint32_t leader) {
  DTF_CHECK(!place.folder.empty());
  return place.folder / fmt::format("{}{}", kSumPrefix, leader);
}

void removeHostSums(FileSystem& file_system, const SnapshotPlace& place) {
  DTF_CHECK(!place.folder.empty());
  try {
    if (!file_system.exists(place.folder)) return;
    if (place.check) place.check(place.folder);
    size_t others = 0;
    for (const FolderEntry& entry : file_system.list(place.folder)) {
      if (!entry.is_folder && entry.name.starts_with(kSumPrefix))
        file_system.removeFile(place.folder / entry.name);
      else
        ++others;
    }
    if (others == 0) file_system.removeFolder(place.folder);
  } catch (const Error& error) {
    log::warning("event=host_sums_not_removed reason=\"{}\"", error.message());
  }
}

SnapshotFolder::SnapshotFolder(FileSystem& file_system, SnapshotPlace place, uint32_t ps_task)
    : file_system_(file_system),
      place_(std::move(place)),
      folder_(place_.folder / fmt::format("ps-{}", ps_task)) {
  DTF_CHECK(!place_.folder.empty());
}

Path SnapshotFolder::pathOf(const CutName& name) const {
  DTF_CHECK(name.epoch > 0);
  return folder_ / fmt::format("{}{:x}-{}", kCutPrefix, name.epoch, name.step);
}

bool SnapshotFolder::isThere() const {
  if (!file_system_.exists(place_.folder)) return false;
  if (place_.check) place_.check(place_.folder);
  return file_system_.exists(folder_);
}

void SnapshotFolder::makeFolders() {
  for (const Path& folder : {place_.folder, folder_}) {
    if (!file_system_.exists(folder)) {
      try {
        file_system_.makeFolder(folder);
      } catch (const Error&) {
        if (!file_system_.exists(folder)) throw;  // else another ps of this job has made it
      }
    }
    if (place_.check) place_.check(folder);
  }
}

void SnapshotFolder::requireRoom(uint64_t bytes) const {
  if (!place_.space) return;
  const std::filesystem::space_info space = place_.space(folder_);
  if (bytes <= space.available) return;
  throw Error(ErrorCode::kCannotWrite,
              fmt::format("a snapshot takes {}, but {} has only {} of {} left: make it larger (a "
                          "container: --shm-size), or choose `durability: checkpoint`",
                          bytesText(bytes), place_.folder.parent_path().string(),
                          bytesText(space.available), bytesText(space.capacity)));
}

bool SnapshotFolder::isWhole(const CutName& name) const {
  try {
    const Manifest found = manifest(name);
    return file_system_.open(pathOf(name) / found.shards.at(0).file)->size() ==
           found.shards.at(0).bytes;
  } catch (const Error& error) {
    log::warning("event=snapshot_rejected reason=\"{}\"", error.message());
    return false;
  }
}

std::vector<CutName> SnapshotFolder::list() const {
  std::vector<CutName> names;
  if (!isThere()) return names;
  for (const FolderEntry& entry : file_system_.list(folder_)) {
    const std::optional<CutName> name = entry.is_folder ? parseName(entry.name) : std::nullopt;
    if (name && isWhole(*name)) names.push_back(*name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t SnapshotFolder::write(const CutName& name, const std::optional<CutName>& keep,
                               Manifest manifest, std::span<const TensorPart> parts) {
  DTF_CHECK(!keep || *keep != name);
  DTF_CHECK(manifest.shards.empty() && manifest.global_step == name.step);
  makeFolders();
  removeAllBut(keep);
  requireRoom(partBytes(parts));
  const Path sealed = pathOf(name);
  const Path temporary = sealed.string() + std::string(kTemporarySuffix);
  file_system_.makeFolder(temporary);
  try {
    manifest.shards = {writeShard(file_system_, temporary, 0, 1, parts)};
    const std::string text = encodeManifest(manifest);
    const auto file = file_system_.create(temporary / kManifestFile);
    file->write(text.data(), text.size());
    file->close();
    file_system_.rename(temporary, sealed);
  } catch (const Error&) {
    removeEntry(file_system_, folder_, {temporary.filename().string(), true});
    throw;
  }
  return manifest.shards[0].bytes;
}

Manifest SnapshotFolder::manifest(const CutName& name) const {
  Manifest found = readManifest(file_system_, pathOf(name));
  if (found.global_step != name.step || found.shards.size() != 1)
    throw Error(ErrorCode::kBadData,
                fmt::format("{} holds a manifest of another step, or of several shards",
                            pathOf(name).string()));
  return found;
}

void SnapshotFolder::read(const CutName& name, const Manifest& manifest,
                          std::span<const WantedPart> wanted) const {
  if (place_.check) place_.check(place_.folder);
  readParts(file_system_, pathOf(name), manifest, wanted);
}

void SnapshotFolder::remove(const CutName& name) {
  removeEntry(file_system_, folder_, {pathOf(name).filename().string(), true});
}

void SnapshotFolder::removeAllBut(const std::optional<CutName>& keep) {
  if (!isThere()) return;
  for (const FolderEntry& entry : file_system_.list(folder_)) {
    if (keep && parseName(entry.name) == keep) continue;
    removeEntry(file_system_, folder_, entry);
  }
}

void SnapshotFolder::removeAll() {
  if (!isThere()) return;
  removeAllBut(std::nullopt);
  removeEntry(file_system_, place_.folder, {folder_.filename().string(), true});
  if (file_system_.list(place_.folder).empty())
    removeEntry(file_system_, place_.folder.parent_path(),
                {place_.folder.filename().string(), true});
}

}  // namespace dtf::checkpoint
