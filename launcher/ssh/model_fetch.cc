#include "launcher/ssh/model_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/checkpoint/restore.h"
#include "common/checkpoint/staying_shards.h"
#include "common/checkpoint/verify.h"
#include "launcher/ssh/model_files.h"

namespace dtf::launcher {

namespace {

constexpr Duration kTellEvery = std::chrono::seconds(5);
constexpr uint64_t kKernelsBytesMax = uint64_t{1} << 20;
constexpr uint64_t kRoomBeside = uint64_t{1} << 20;  // of the manifest and the folders
// The disk takes them while more comes: one wait for all of a large file would be longer than the
// patience of the hosts with a launcher that says nothing.
constexpr uint64_t kSyncEvery = uint64_t{32} << 20;
constexpr std::string_view kUnfinished = ".tmp";       // of a shard that joins a checkpoint
constexpr const char* kComing = "checkpoints.coming";  // until it takes the place of another run's

// As if the shards had been beside it always.
void gather(checkpoint::Manifest& manifest) {
  manifest.stays_in.clear();
  for (checkpoint::ShardFile& shard : manifest.shards) shard.host.clear();
}

}  // namespace

ModelFetch::ModelFetch(FileSystem& file_system, const Clock& clock, ModelFetchOptions options,
                       std::function<void(const std::string&)> tell)
    : file_system_(file_system),
      clock_(clock),
      options_(std::move(options)),
      tell_(std::move(tell)),
      folder_(file_system, options_.run_dir / "checkpoints", Incarnation::ofNow()),
      came_(clock.now()),
      told_(came_) {
  for (const std::string& host : options_.ps)
    if (std::find(hosts_.begin(), hosts_.end(), host) == hosts_.end()) hosts_.push_back(host);
}

ModelFetch::~ModelFetch() {
  const bool unfinished = beside_ && out_ != nullptr;
  out_.reset();
  attempts().abandon();
  std::error_code ignored;
  if (unfinished) std::filesystem::remove(shardPath(), ignored);
  if (!coming_) return;
  try {
    removeComing();
  } catch (const Error&) {
    // The next fetch tries again.
  }
}

std::optional<ModelAsk> ModelFetch::next() {
  if (asked_ || done()) return std::nullopt;
  came_ = clock_.now();
  if (stage_ == Stage::kManifest) asked_ = {options_.chief, manifestName(options_.step)};
  if (stage_ == Stage::kShards) asked_ = shardAsk();
  if (stage_ == Stage::kKernels) asked_ = {options_.chief, kernelsName()};
  return asked_;
}

// With its own ps, as far as that is known; with another one, where there were more or fewer of
// them when it was written; or copied to the chief by hand.
ModelAsk ModelFetch::shardAsk() const {
  DTF_CHECK(!lacking_.empty() && place_ < places());
  const std::string& file = shard().file;
  const size_t ps = lacking_.front();
  const bool is_last = place_ + 1 == places();
  if (is_last) return {options_.chief, shardName(options_.step, file)};
  const bool has_own = ps < options_.ps.size();
  const std::string& host =
      place_ == 0 && has_own ? options_.ps[ps] : hosts_[has_own ? place_ - 1 : place_];
  return {host, stayingShardName(stays_in_, file)};
}

size_t ModelFetch::places() const {
  if (stays_in_.empty()) return 1;
  return (lacking_.front() < options_.ps.size() ? 1 : 0) + hosts_.size() + 1;
}

void ModelFetch::take(const FetchedReport& report) {
  using Found = FetchedReport::Found;
  if (done() || !asked_ || left_ > 0)
    throw Error(ErrorCode::kBadData, "a file that was not requested");
  came_ = clock_.now();
  const bool is_there = report.found == Found::kThere;
  const auto expect = [&](bool fits) {
    if (!fits)
      throw Error(ErrorCode::kBadData, fmt::format("{}: {} can't have {} bytes", asked_->host,
                                                   asked_->name, report.bytes));
  };
  if (stage_ == Stage::kManifest) {
    if (report.found == Found::kSame) return fetchBeside();
    if (!is_there) throw Error(ErrorCode::kUnavailable, asked_->host + " has no " + asked_->name);
    expect(report.bytes > 0 && report.bytes <= checkpoint::kManifestBytesMax);
  } else if (stage_ == Stage::kShards) {
    if (!is_there) return nextShard();
    expect(report.bytes > 0 && report.bytes == shard().bytes);
    beginShard();
  } else {
    if (!is_there) return commit();
    expect(report.bytes > 0 && report.bytes <= kKernelsBytesMax);
  }
  text_.clear();
  left_ = report.bytes;
}

void ModelFetch::take(std::string_view bytes) {
  if (done() || !asked_ || bytes.empty() || bytes.size() > left_)
    throw Error(ErrorCode::kBadData, "unexpected bytes of a file");
  came_ = clock_.now();
  left_ -= bytes.size();
  if (stage_ == Stage::kShards)
    takeShard(bytes);
  else
    text_ += bytes;
  if (left_ == 0) finishFile();
}

void ModelFetch::finishFile() {
  if (stage_ == Stage::kManifest) return takeManifest();
  if (stage_ == Stage::kShards) return finishShard();
  atomicReplace(options_.run_dir / kernelsName(), text_);
  commit();
}

void ModelFetch::takeManifest() {
  DTF_CHECK(asked_ && left_ == 0 && lacking_.empty());
  const std::string where = asked_->host + ": " + asked_->name;
  manifest_ = checkpoint::decodeManifest(text_, where);
  if (manifest_.global_step != options_.step)
    throw Error(ErrorCode::kBadData,
                fmt::format("{} is the manifest of step {}", where, manifest_.global_step));
  stays_in_ = manifest_.stays_in;
  gather(manifest_);
  for (size_t i = 0; i < manifest_.shards.size(); ++i) lacking_.push_back(i);
  const checkpoint::Verification here =
      checkpoint::verifyCheckpoint(file_system_, folder(), checkpoint::VerifyDepth::kSizes);
  const bool is_same = here.manifest && *here.manifest == manifest_;
  if (is_same && here.whole()) {  // an earlier launch has brought it, and nothing was trained since
    stage_ = Stage::kDone;
    asked_.reset();
    return;
  }
  for (const checkpoint::ShardFile& each : manifest_.shards) bytes_ += each.bytes;
  checkRoom(bytes_);
  removeComing();
  if (areOfAnotherRun(is_same))
    coming_.emplace(file_system_, options_.run_dir / kComing, Incarnation::ofNow());
  attempts().prepare();
  attempts().sweepStale();
  target_ = attempts().path() / attempts().beginAttempt(options_.step);
  fetchShards(stays_in_.empty() ? options_.chief : "the hosts of the ps");
}

bool ModelFetch::areOfAnotherRun(bool has_same) {
  const std::vector<uint64_t> steps = folder_.steps();
  if (steps.empty() || steps.back() < options_.step) return false;
  return steps.back() > options_.step || !has_same;
}

// Also that of a launcher that was killed.
void ModelFetch::removeComing() {
  const std::filesystem::path coming = options_.run_dir / kComing;
  if (!file_system_.exists(coming)) return;
  for (const FolderEntry& entry : file_system_.list(coming))
    if (entry.is_folder) removeTree(file_system_, coming / entry.name);
  removeTree(file_system_, coming);
}

// Two renames, after all that can take long or find no room.
void ModelFetch::takePlace() {
  DTF_CHECK(coming_ && stage_ == Stage::kDone);
  const std::optional<std::filesystem::path> aside = folder_.setAside();
  try {
    file_system_.rename(coming_->path(), folder_.path());
  } catch (const Error&) {
    if (aside) folder_.putBack(*aside);
    throw;
  }
  coming_.reset();
  if (aside)
    tell_(fmt::format("the checkpoints in {} were of another run, and are in {} now",
                      folder_.path().string(), aside->filename().string()));
  file_system_.syncFolder(options_.run_dir);
}

void ModelFetch::checkRoom(uint64_t bytes) const {
  std::error_code unknown;
  const uint64_t room = std::filesystem::space(options_.run_dir, unknown).available;
  if (!unknown && room < bytes + kRoomBeside)
    throw Error(ErrorCode::kCannotWrite,
                fmt::format("it needs {}, and the disk of {} has room for {}", bytesText(bytes),
                            options_.run_dir.string(), bytesText(room)));
}

// The chief has written the manifest here.
void ModelFetch::fetchBeside() {
  manifest_ = checkpoint::readManifest(file_system_, folder());
  stays_in_ = manifest_.stays_in;
  for (size_t i = 0; i < manifest_.shards.size(); ++i) {
    const checkpoint::ShardFile& each = manifest_.shards[i];
    if (file_system_.exists(checkpoint::shardPath(file_system_, folder(), manifest_, each)))
      continue;
    lacking_.push_back(i);
    bytes_ += each.bytes;
  }
  if (stays_in_.empty() || lacking_.empty()) {
    stage_ = Stage::kDone;
    asked_.reset();
    return;
  }
  checkRoom(bytes_);
  beside_ = true;
  target_ = folder();
  fetchShards("the hosts of the ps");
}

void ModelFetch::fetchShards(const std::string& from) {
  tell_(fmt::format("copying the checkpoint of step {}, {}, from {}", options_.step,
                    bytesText(bytes_), from));
  told_ = clock_.now();
  stage_ = Stage::kShards;
  asked_.reset();
}

// It isn't where it was looked for.
void ModelFetch::nextShard() {
  DTF_CHECK(asked_ && out_ == nullptr);
  const std::string first = asked_->host;
  asked_.reset();
  if (++place_ < places()) return;
  throw Error(
      ErrorCode::kUnavailable,
      stays_in_.empty()
          ? fmt::format("{} has no {}", first, shardName(options_.step, shard().file))
          : fmt::format("no host of a ps has {}", stayingShardName(stays_in_, shard().file)));
}

std::filesystem::path ModelFetch::shardPath() const {
  return target_ / (shard().file + std::string(beside_ ? kUnfinished : ""));
}

void ModelFetch::beginShard() {
  DTF_CHECK(out_ == nullptr && !target_.empty());
  // Of a launcher that was killed.
  if (beside_ && file_system_.exists(shardPath())) file_system_.removeFile(shardPath());
  out_ = file_system_.create(shardPath());
  checksum_ = Checksum();
  unsynced_ = 0;
}

void ModelFetch::takeShard(std::string_view bytes) {
  DTF_CHECK(out_ != nullptr);
  out_->write(bytes.data(), bytes.size());
  checksum_.update(bytes.data(), bytes.size());
  unsynced_ += bytes.size();
  came_bytes_ += bytes.size();
  if (unsynced_ >= kSyncEvery) {
    out_->sync();
    unsynced_ = 0;
  }
  if (clock_.now() < told_ + kTellEvery) return;
  told_ = clock_.now();
  tell_(
      fmt::format("copied {} of {} of the checkpoint", bytesText(came_bytes_), bytesText(bytes_)));
}

void ModelFetch::finishShard() {
  DTF_CHECK(asked_ && out_ != nullptr && !lacking_.empty());
  out_->sync();
  out_->close();
  if (checksum_.value() != shard().checksum)
    throw Error(
        ErrorCode::kBadData,
        fmt::format(
            "{}: {} was damaged there, or on its way: its checksum is {}, the manifest has {}",
            asked_->host, asked_->name, hexOf(checksum_.value()), hexOf(shard().checksum)));
  if (beside_) file_system_.rename(shardPath(), target_ / shard().file);
  out_.reset();
  lacking_.pop_front();
  place_ = 0;
  asked_.reset();
  if (!lacking_.empty()) return;
  if (beside_) file_system_.syncFolder(target_);
  if (beside_ || !options_.kernels) return commit();
  stage_ = Stage::kKernels;
}

void ModelFetch::look() {
  if (!asked_ || clock_.now() <= came_ + kNextWithin) return;
  throw Error(ErrorCode::kDeadline,
              fmt::format("{}: no more of {} arrived within {:g} s", asked_->host, asked_->name,
                          toSeconds(kNextWithin)));
}

void ModelFetch::commit() {
  DTF_CHECK(stage_ != Stage::kDone && lacking_.empty());
  stage_ = Stage::kDone;
  asked_.reset();
  if (beside_) return;
  attempts().commit(manifest_);
  if (coming_) takePlace();
  try {
    folder_.prune(options_.keep);
  } catch (const Error& error) {
    tell_("warning: older checkpoints are not removed: " + error.message());
  }
}

}  // namespace dtf::launcher
