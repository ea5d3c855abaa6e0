#include "common/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/checkpoint/restore.h"
#include "common/checkpoint/staying_files.h"

namespace dtf::checkpoint {

namespace {

constexpr std::string_view kStep = "step-";

// "step-120" -> 120; nullopt for other spellings, as "step-0120".
std::optional<uint64_t> parseStep(std::string_view name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  uint64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kStep.size(), end, step);
  if (error != std::errc() || at != end) return std::nullopt;
  if (name != std::string(kStep) + std::to_string(step)) return std::nullopt;
  return step;
}

constexpr std::string_view kMark = "seen-";

bool isStale(std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || !parseStep(name.substr(0, dot))) return false;
  const std::string_view kind = name.substr(dot);
  return kind.starts_with(".tmp-") || kind.starts_with(".trash-");
}

// Makes `folder` and its missing parents, durably.
void makeMissing(FileSystem& file_system, const std::filesystem::path& folder) {
  if (file_system.exists(folder)) return;
  const std::filesystem::path parent = folder.parent_path();
  if (!parent.empty() && parent != folder) makeMissing(file_system, parent);
  file_system.makeFolder(folder);
  file_system.syncFolder(parent.empty() ? "." : parent);
}

// An unreadable checkpoint may be whole: falling back to an older one would lose steps.
void checkReadable(std::span<const Problem> problems) {
  const auto found = std::find_if(problems.begin(), problems.end(),
                                  [](const Problem& problem) { return problem.forbidden; });
  if (found == problems.end()) return;
  throw Error(
      ErrorCode::kPermission,
      found->reason +
          ": another user may have written that checkpoint; give this user read permission, or "
          "move the checkpoint away to use the one before it");
}

// Returns the folder name under which the ps hold the shards of the checkpoint in `folder`. Returns
// an empty name when
// - the shards are beside the manifest,
// - there is no manifest, or it is damaged,
// - the manifest is of another step: it is a copy, and the shards belong to the original.
// Errors: kBadData when the manifest can't be read.
std::string stayingNameIn(FileSystem& file_system, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestFile;
  if (!file_system.exists(path)) return {};
  const std::string bytes = readWhole(file_system, path, kManifestBytesMax);
  const std::string name = folder.filename().string();
  try {
    const Manifest manifest = decodeManifest(bytes, path.string());
    const bool is_its_own = parseStep(name.substr(0, name.find('.'))) == manifest.global_step;
    return is_its_own ? manifest.stays_in : std::string();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

CheckpointFolder::CheckpointFolder(FileSystem& file_system, std::filesystem::path folder,
                                   Incarnation incarnation, StayingFiles* staying)
    : file_system_(file_system),
      folder_(std::move(folder)),
      incarnation_(incarnation),
      staying_(staying) {
  DTF_CHECK(!folder_.empty());
}

std::filesystem::path CheckpointFolder::stepFolder(uint64_t step) const {
  return folder_ / (std::string(kStep) + std::to_string(step));
}

std::string CheckpointFolder::suffix(const char* kind) {
  char hex[17] = {};
  std::to_chars(hex, hex + 16, incarnation_.value, 16);
  return std::string(kind) + hex + "." + std::to_string(++names_used_);
}

void CheckpointFolder::prepare() {
  const std::filesystem::path parent = folder_.parent_path();
  if (!parent.empty()) makeMissing(file_system_, parent);
  // Syncs an existing folder, too: the process that made it may have died before its sync.
  if (!file_system_.exists(folder_)) file_system_.makeFolder(folder_);
  file_system_.syncFolder(parent.empty() ? "." : parent);
}

std::optional<std::filesystem::path> CheckpointFolder::setAside() {
  DTF_CHECK(!attempt_);
  if (steps().empty()) return std::nullopt;
  std::filesystem::path aside;
  for (int n = 1; aside.empty() || file_system_.exists(aside); ++n)
    aside = folder_.string() + ".old-" + std::to_string(n);
  file_system_.rename(folder_, aside);
  whole_.clear();
  try {
    prepare();  // makes the new name durable, and the rename with it
  } catch (const Error&) {
    putBack(aside);
    throw;
  }
  return aside;
}

void CheckpointFolder::putBack(const std::filesystem::path& aside) {
  try {
    file_system_.rename(aside, folder_);
    prepare();
  } catch (const Error& error) {
    log::warning("event=checkpoints_set_aside folder={} reason=\"they could not be put back: {}\"",
                 aside.string(), error.message());
  }
}

std::vector<uint64_t> CheckpointFolder::steps() {
  std::vector<uint64_t> found;
  if (!file_system_.exists(folder_)) return found;
  for (const FolderEntry& entry : file_system_.list(folder_))
    if (const auto step = parseStep(entry.name); step && entry.is_folder) found.push_back(*step);
  std::sort(found.begin(), found.end());
  return found;
}

uint32_t CheckpointFolder::sweepStale() {
  uint32_t swept = 0;
  std::optional<Error> first_error;
  if (!file_system_.exists(folder_)) return 0;
  for (const FolderEntry& entry : file_system_.list(folder_)) {
    if (!entry.is_folder && entry.name.starts_with(kMark)) {
      file_system_.removeFile(folder_ / entry.name);
      continue;
    }
    if (!entry.is_folder || !isStale(entry.name)) continue;
    if (attempt_ && attempt_->folder == folder_ / entry.name) continue;
    try {
      // Makes durable a rename that its process could not sync: see abandon().
      if (swept == 0) file_system_.syncFolder(folder_);
      const bool is_attempt = entry.name.find(".tmp-") != std::string::npos;
      if (is_attempt) removeWithShards(folder_ / entry.name, stayingName(entry.name));
      if (is_attempt || removeTrash(folder_ / entry.name)) ++swept;
    } catch (const Error& error) {
      if (!first_error) first_error = error;
    }
  }
  if (first_error) throw *first_error;
  return swept;
}

std::string CheckpointFolder::showMark() {
  DTF_CHECK(mark_.empty());
  const std::string name = suffix(std::string(kMark).c_str());
  file_system_.create(folder_ / name)->close();
  return mark_ = name;
}

void CheckpointFolder::removeMark() {
  if (mark_.empty()) return;
  try {
    file_system_.removeFile(folder_ / std::exchange(mark_, {}));
  } catch (const Error&) {
    // sweepStale() tries again.
  }
}

std::string CheckpointFolder::beginAttempt(uint64_t step) {
  DTF_CHECK(!attempt_);
  const std::string name = stepFolder(step).filename().string() + suffix(".tmp-");
  if (!file_system_.exists(folder_)) {
    log::warning("event=checkpoints_gone folder={} reason=\"it was removed; made anew\"",
                 folder_.string());
    whole_.clear();
    prepare();
  }
  file_system_.makeFolder(folder_ / name);
  attempt_ = Attempt{step, folder_ / name, false};
  DTF_FAILPOINT("checkpoint.after_make_attempt");
  if (staying_ == nullptr) return name;
  try {
    // The attempt's name is durable before any ps makes files for it.
    file_system_.syncFolder(folder_);
  } catch (const Error&) {
    abandon();
    throw;
  }
  return name;
}

CommitOutcome CheckpointFolder::commit(const Manifest& manifest) {
  DTF_CHECK(attempt_ && !attempt_->poisoned);
  DTF_CHECK(manifest.global_step == attempt_->step);
  const uint64_t step = attempt_->step;
  // Until the commit: after a failed fsync, a second fsync of the same files proves nothing.
  attempt_->poisoned = true;
  if (file_system_.exists(stepFolder(step))) {
    if (isWhole(step)) {
      abandon();
      return CommitOutcome::kKeptExisting;
    }
    moveToTrash(step);
  }
  publish(manifest);
  whole_[step] = true;
  attempt_.reset();
  return CommitOutcome::kCommitted;
}

void CheckpointFolder::checkShards(const Manifest& manifest) const {
  DTF_CHECK(attempt_ && !manifest.shards.empty());
  DTF_CHECK(manifest.stays_in.empty() == (staying_ == nullptr));
  if (staying_ != nullptr) return;  // the ps have just reported their files
  for (const ShardFile& shard : manifest.shards) {
    const std::filesystem::path path = attempt_->folder / shard.file;
    uint64_t size = 0;
    try {
      size = file_system_.open(path)->size();
    } catch (const Error& error) {
      throw Error(ErrorCode::kCannotWrite,
                  error.message() +
                      ": a ps has just written this file; either another process removed it, or "
                      "not all tasks share this folder: then set 'gather: true'");
    }
    if (size != shard.bytes)
      throw Error(ErrorCode::kCannotWrite, path.string() + " has " + std::to_string(size) +
                                               " bytes, but the task that wrote it reports " +
                                               std::to_string(shard.bytes));
  }
}

void CheckpointFolder::publish(const Manifest& manifest) {
  DTF_CHECK(attempt_ && attempt_->poisoned && !attempt_->was_visible);
  checkShards(manifest);
  DTF_FAILPOINT("checkpoint.after_check_shards");
  const std::string text = encodeManifest(manifest);
  const auto file = file_system_.create(attempt_->folder / kManifestFile);
  DTF_FAILPOINT("checkpoint.after_manifest_create");
  file->write(text.data(), text.size());
  DTF_FAILPOINT("checkpoint.after_manifest_write");
  file->sync();
  DTF_FAILPOINT("checkpoint.after_manifest_sync");
  file->close();
  // The names of all files, also of the shards, are durable before the checkpoint's name.
  file_system_.syncFolder(attempt_->folder);
  DTF_FAILPOINT("checkpoint.after_attempt_sync");
  file_system_.rename(attempt_->folder, stepFolder(attempt_->step));
  DTF_FAILPOINT("checkpoint.after_rename");
  try {
    file_system_.syncFolder(folder_);
  } catch (const Error&) {
    // A power cut may undo the rename, so the checkpoint must not stay visible.
    attempt_->was_visible = true;
    file_system_.rename(stepFolder(attempt_->step), attempt_->folder);
    throw;
  }
  DTF_FAILPOINT("checkpoint.after_parent_sync");
}

void CheckpointFolder::abandon() {
  if (!attempt_) return;
  const Attempt attempt = *attempt_;
  attempt_.reset();
  try {
    // Before the files are removed: a power cut must not bring back the name without them.
    if (attempt.was_visible) file_system_.syncFolder(folder_);
    // An attempt that could not be renamed back is a checkpoint and keeps its shards.
    if (!file_system_.exists(attempt.folder)) return;
    removeWithShards(attempt.folder, stayingName(attempt.folder.filename().string()));
  } catch (const Error&) {
    // sweepStale() tries again.
  }
}

Latest CheckpointFolder::latestValid(VerifyDepth depth) {
  Latest latest;
  const std::vector<uint64_t> all = steps();
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    Verification result = verifyCheckpoint(file_system_, stepFolder(*step), depth, staying_);
    if (result.manifest && result.manifest->global_step != *step)
      result.problems.push_back({kManifestFile,
                                 {},
                                 (stepFolder(*step) / kManifestFile).string() +
                                     ": it is the manifest of step " +
                                     std::to_string(result.manifest->global_step)});
    if (result.whole()) {
      if (depth == VerifyDepth::kFull) whole_[*step] = true;
      latest.found = Latest::Found{stepFolder(*step), std::move(*result.manifest)};
      return latest;
    }
    checkReadable(result.problems);
    whole_[*step] = false;
    latest.rejected.push_back({*step, std::move(result.problems)});
  }
  return latest;
}

// Verifies each checkpoint in full once, then returns the cached result.
bool CheckpointFolder::isWhole(uint64_t step) {
  if (const auto known = whole_.find(step); known != whole_.end()) return known->second;
  const Verification result =
      verifyCheckpoint(file_system_, stepFolder(step), VerifyDepth::kFull, staying_);
  return whole_[step] = result.whole() && result.manifest->global_step == step;
}

void CheckpointFolder::moveToTrash(uint64_t step) {
  std::filesystem::path trash = stepFolder(step);
  trash += suffix(".trash-");
  whole_.erase(step);
  file_system_.rename(stepFolder(step), trash);
  // Before the files are removed: a power cut must not bring back the name without them.
  file_system_.syncFolder(folder_);
  DTF_FAILPOINT("checkpoint.after_trash_rename");
  removeTrash(trash);
  DTF_FAILPOINT("checkpoint.after_trash_removal");
}

// Removes the shards before the folder: only the folder names them, which a retry needs.
void CheckpointFolder::removeWithShards(const std::filesystem::path& folder,
                                        const std::string& staying_name) {
  if (staying_ != nullptr && !staying_name.empty()) {
    staying_->drop(staying_name);
    DTF_FAILPOINT("stay.after_drop");
  }
  removeTree(file_system_, folder);
}

// Returns false if the manifest can't be read: only it names the shards, so the folder is left for
// sweepStale().
bool CheckpointFolder::removeTrash(const std::filesystem::path& folder) {
  std::string staying_name;
  try {
    staying_name = stayingNameIn(file_system_, folder);
  } catch (const Error& error) {
    if (staying_ != nullptr) {
      log::warning("event=trash_left folder={} reason=\"{}\"", folder.string(), error.message());
      return false;
    }
  }
  const bool leaves_shards = staying_ == nullptr && !staying_name.empty();
  if (leaves_shards && !std::exchange(warned_of_shards_, true))
    log::warning(
        "event=shards_left folder=shards/{} reason=\"the job's shards no longer stay with the ps, "
        "so the ps keep the shards of older checkpoints\" advice=\"in the folder shards below the "
        "run_dir of each ps, remove the folders that no manifest names\"",
        staying_name);
  removeWithShards(folder, staying_name);
  return true;
}

std::vector<CheckpointFolder::Kept> CheckpointFolder::judgeBySizes() {
  std::vector<Kept> all;
  for (const uint64_t step : steps()) {
    const Verification found =
        verifyCheckpoint(file_system_, stepFolder(step), VerifyDepth::kSizes, staying_);
    const auto known = whole_.find(step);
    const bool whole = found.whole() && found.manifest->global_step == step &&
                       (known == whole_.end() || known->second);
    all.push_back({step, whole, found.manifest ? found.manifest->run_seconds : 0});
  }
  return all;
}

std::vector<uint64_t> CheckpointFolder::prune(const KeepRule& rule) {
  if (rule.keep == 0 || steps().size() <= rule.keep) return {};
  const std::vector<Kept> all = judgeBySizes();
  std::vector<uint64_t> going = beyond(rule, all);
  DTF_CHECK(going.size() + rule.keep <= all.size());
  if (going.empty()) return going;
  const auto stays = [&going](uint64_t step) {
    return std::find(going.begin(), going.end(), step) == going.end();
  };
  const auto whole = [this](uint64_t step) { return isWhole(step); };
  const bool safe = std::any_of(all.rbegin(), all.rend(), [&](const Kept& kept) {
    return stays(kept.step) && isWhole(kept.step);
  });
  if (!safe) {
    const auto last_whole = std::find_if(going.rbegin(), going.rend(), whole);
    if (last_whole != going.rend()) going.erase(std::next(last_whole).base());
  }
  for (const uint64_t step : going) moveToTrash(step);
  return going;
}

void CheckpointFolder::removeInitial() {
  const std::vector<uint64_t> all = steps();
  if (all.size() < 2 || all.front() != 0 || !isWhole(all.back())) return;
  moveToTrash(0);
}

// Returns the steps to remove: older than the newest `keep` whole ones. Damaged checkpoints don't
// count, and are removed once enough whole ones are newer.
std::vector<uint64_t> CheckpointFolder::beyond(const KeepRule& rule, const std::vector<Kept>& all) {
  DTF_CHECK(rule.keep > 0);
  size_t end = all.size();
  for (uint32_t kept = 0; end > 0 && kept < rule.keep; --end) kept += all[end - 1].whole;
  std::vector<uint64_t> going;
  double last_slot = 0;
  for (size_t i = 0; i < end; ++i) {
    const double slot = rule.keep_every_hours > 0 && all[i].whole
                            ? std::floor(all[i].run_seconds / 3600 / rule.keep_every_hours)
                            : 0;
    const bool stays =
        std::find(rule.also.begin(), rule.also.end(), all[i].step) != rule.also.end();
    if (slot > last_slot)
      last_slot = slot;  // the first of its interval is kept for good
    else if (!stays)
      going.push_back(all[i].step);
  }
  return going;
}

}  // namespace dtf::checkpoint
