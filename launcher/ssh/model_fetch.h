#pragma once

// The near end of bringing the trained model of a job to the launcher's own run directory: which
// host is asked for which file, and what becomes of the bytes. Without a descriptor or a loop of a
// connection: ssh_hosts.h has those.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/file_system.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "launcher/ssh/messages.h"

namespace dtf::launcher {

struct ModelFetchOptions {
  std::filesystem::path run_dir;  // here
  uint64_t step = 0;              // of the checkpoint
  std::string chief;              // its host, which has the manifest
  std::vector<std::string> ps;    // of each ps its host, where shards may stay
  // Were timed by the run, which keeps its choices in a file (train/kernel_choices.h).
  bool kernels = false;
  checkpoint::KeepRule keep;  // of what earlier launches have brought
};

// A host that is to be asked for a file (model_files.h).
struct ModelAsk {
  std::string host;
  std::string name;
};

// First the manifest, then each shard, then the file that says which kernels the run has chosen.
// The copy is a checkpoint as the chief makes them: an attempt until all of it is here, has the
// checksums of the manifest and is on the disk; and its shards are beside the manifest wherever
// they were before. Where the chief writes into this very run directory only shards are brought
// that stay elsewhere. A newer checkpoint, or another one of that step, can only be of another run:
// the folder of all that are here is set aside, once the new one is whole in a folder beside it.
// Owns: the attempt, which is removed with this unless it has become a checkpoint.
// Borrows: `file_system`, `clock` (must outlive this).
// Threads: thread-compatible.
// Blocks: on the disk.
// Errors: kBadData for what is no checkpoint of that step, or is damaged; kUnavailable for files
// that no host has; kCannotWrite, before anything has come where there is too little room. After
// any of them this is of no more use, and what was here before is still there.
class ModelFetch {
 public:
  static constexpr Duration kNextWithin = std::chrono::seconds(60);  // after the last that came

  // `tell` gets a line where something is on its way, for people.
  ModelFetch(FileSystem& file_system, const Clock& clock, ModelFetchOptions options,
             std::function<void(const std::string&)> tell);
  ~ModelFetch();
  ModelFetch(const ModelFetch&) = delete;
  ModelFetch& operator=(const ModelFetch&) = delete;

  // What is to be asked for now, told once; nullopt: an answer is on its way, or all is here.
  std::optional<ModelAsk> next();
  // Whether an answer of that host is awaited, or the bytes of one: nobody else may answer.
  bool awaits(const std::string& host) const { return asked_ && asked_->host == host; }
  void take(const FetchedReport& report);
  void take(std::string_view bytes);
  // To be called often. Errors: kDeadline.
  void look();

  bool done() const { return stage_ == Stage::kDone; }

 private:
  enum class Stage : uint8_t { kManifest, kShards, kKernels, kDone };

  std::filesystem::path folder() const { return folder_.stepFolder(options_.step); }
  ModelAsk shardAsk() const;
  size_t places() const;
  const checkpoint::ShardFile& shard() const { return manifest_.shards.at(lacking_.front()); }
  std::filesystem::path shardPath() const;
  void takeManifest();
  bool areOfAnotherRun(bool has_same);
  checkpoint::CheckpointFolder& attempts() { return coming_ ? *coming_ : folder_; }
  void removeComing();
  void takePlace();
  void checkRoom(uint64_t bytes) const;
  void fetchBeside();
  void fetchShards(const std::string& from);
  void nextShard();
  void beginShard();
  void takeShard(std::string_view bytes);
  void finishFile();
  void finishShard();
  void commit();

  FileSystem& file_system_;
  const Clock& clock_;
  const ModelFetchOptions options_;
  const std::function<void(const std::string&)> tell_;
  checkpoint::CheckpointFolder folder_;
  // Of this one alone, while those in `folder_` are of another run.
  std::optional<checkpoint::CheckpointFolder> coming_;
  std::vector<std::string> hosts_;  // where a shard may stay, besides that of its ps
  Stage stage_ = Stage::kManifest;
  std::optional<ModelAsk> asked_;
  TimePoint came_, told_;
  uint64_t left_ = 0;  // of the file that comes
  std::string text_;   // of the manifest, or of the choices of kernels
  checkpoint::Manifest manifest_;
  std::string stays_in_;          // as the chief's manifest has it
  bool beside_ = false;           // the shards join a checkpoint that is here
  std::filesystem::path target_;  // the folder that shards come into
  std::deque<size_t> lacking_;    // shards
  size_t place_ = 0;              // of those where the first of them may be
  std::unique_ptr<WritableFile> out_;
  Checksum checksum_;
  uint64_t unsynced_ = 0, came_bytes_ = 0, bytes_ = 0;
};

}  // namespace dtf::launcher
