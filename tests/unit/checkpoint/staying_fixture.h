#pragma once

// The ps of a job, each with a run directory of its own, on one simulated disk; they carry out the
// calls of StayingShards there.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/checkpoint/staying_files.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {

class DiskPs final : public StayingShards {
 public:
  DiskPs(FileSystem& disk, uint32_t ps_tasks) : disk_(disk), ps_tasks_(ps_tasks) {}

  static std::filesystem::path shardsOf(uint32_t ps) {
    return "/host-" + std::to_string(ps) + "/run/shards";
  }

  // Sets the values that the ps have captured.
  void setValues(const std::vector<ShardValues>* values) { values_ = values; }
  // The next drop() finds a ps that is lost.
  void loseOne() { lost_ = true; }
  const std::vector<std::string>& calls() const { return calls_; }

  std::vector<SavedShard> save(const std::string& name, const CutPosition&) override {
    std::vector<SavedShard> saved;
    for (uint32_t ps = 0; ps < ps_tasks_; ++ps) {
      const auto folder = makeStaying(disk_, shardsOf(ps), name);
      saved.push_back({writeShard(disk_, folder, ps, ps_tasks_, values_->at(ps).parts), {}, 0});
      disk_.syncFolder(folder);
    }
    return saved;
  }
  std::vector<std::vector<FoundShard>> find(
      const std::string& name, const std::vector<std::vector<ShardFile>>& wanted) override {
    std::vector<std::vector<FoundShard>> found(ps_tasks_);
    for (uint32_t ps = 0; ps < ps_tasks_; ++ps)
      for (const ShardFile& file : wanted.at(ps)) {
        calls_.push_back("find " + file.file + " at " + std::to_string(ps));
        found[ps].push_back(findStaying(disk_, shardsOf(ps) / name / file.file, file));
      }
    return found;
  }
  std::string fetch(uint32_t ps_task, const StayingPiece& piece) override {
    calls_.push_back("fetch " + std::to_string(piece.offset) + " from " + std::to_string(ps_task));
    std::string bytes(piece.bytes, '\0');
    disk_.open(shardsOf(ps_task) / piece.name / piece.file)
        ->read(piece.offset, bytes.data(), bytes.size());
    return bytes;
  }
  void drop(const std::string& name) override {
    if (std::exchange(lost_, false)) throw Error(ErrorCode::kUnavailable, "lost ps/1");
    for (uint32_t ps = 0; ps < ps_tasks_; ++ps) dropStaying(disk_, shardsOf(ps), name);
  }

 private:
  FileSystem& disk_;
  const uint32_t ps_tasks_;
  const std::vector<ShardValues>* values_ = nullptr;
  bool lost_ = false;
  std::vector<std::string> calls_;
};

// save() of checkpoint_fixture.h, but the shards stay.
inline CommitOutcome saveStaying(CheckpointFolder& folder, DiskPs& ps, uint64_t step,
                                 uint32_t ps_tasks, Random& random) {
  const auto values = cutModel(smallModel(), ps_tasks, step, random);
  ps.setValues(&values);
  try {
    const std::string name = stayingName(folder.beginAttempt(step));
    std::vector<ShardFile> shards;
    for (SavedShard& saved : ps.save(name, {step})) {
      shards.push_back(std::move(saved.file));
      shards.back().host = "node" + std::to_string(shards.size() - 1);
    }
    Manifest manifest = manifestFor(smallModel(), step, std::move(shards));
    manifest.stays_in = name;
    return folder.commit(manifest);
  } catch (const std::exception&) {
    folder.abandon();
    throw;
  }
}

}  // namespace dtf::checkpoint
