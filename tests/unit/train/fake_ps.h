#pragma once

// The ps of a job as a checkpointer sees them: a test sets their position and their failures. They
// write their one shard for real.

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/file_system.h"
#include "common/base/mutex.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/replication/epoch.h"

namespace dtf::train {

inline const std::filesystem::path kRunDir = "/run";
inline constexpr auto kSync = cluster::ReplicationSpec::Mode::kSync;
inline constexpr auto kAsync = cluster::ReplicationSpec::Mode::kAsync;

// A model of one variable on one ps.
inline arena::ModelDeclaration oneVariable(cluster::ReplicationSpec::Mode mode, uint64_t steps) {
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"v", Shape{16}, {{0, 0, 16}}}}, 1);
  model.replication = {mode, 1, 1};
  model.steps = steps;
  return model;
}

// Thread-safe.
class FakePs final : public checkpoint::CheckpointClient {
 public:
  FakePs(FileSystem& disk, ManualClock& clock) : disk_(disk), clock_(clock) {}

  // Sets the position of the ps. A cut that was requested before that position is captured.
  void setPosition(CutPosition position) {
    MutexLock lock(mutex_);
    position_ = std::move(position);
  }
  // Sets the number of updates that ps/0 has applied, if it isn't the (first) position.
  void setGlobalStep(uint64_t step) {
    MutexLock lock(mutex_);
    global_step_ = step;
  }
  void setHeld(checkpoint::PsState held) {
    MutexLock lock(mutex_);
    held_ = {held};
  }
  void setHoldsValues() { setHeld({{replication::kFirstEpoch, 0}}); }
  // Returns the newest epoch that began with a checkpoint.
  uint64_t epoch() {
    MutexLock lock(mutex_);
    return held_.at(0).epoch;
  }
  // Makes each call of that name take `by` longer, or fail the next `times` times.
  void slowDown(const std::string& call, Duration by) {
    MutexLock lock(mutex_);
    slow_[call] = by;
  }
  void fail(const std::string& call, const Error& error, int times = 1) {
    MutexLock lock(mutex_);
    for (int i = 0; i < times; ++i) failing_.emplace(call, error);
  }
  // From now on awaitCut() waits for a position that training never reaches.
  void stopTraining() {
    MutexLock lock(mutex_);
    never_reached_ = true;
  }
  // Makes save() wait until `gate` is set.
  void closeGate(std::shared_future<void> gate) {
    MutexLock lock(mutex_);
    gate_ = std::move(gate);
  }
  // Returns the calls since the last calls(), such as "startCut 5" and "save step-5.tmp-1.1".
  std::vector<std::string> calls() {
    MutexLock lock(mutex_);
    return std::exchange(calls_, {});
  }

  // Returns once a call that begins with `call` has been made.
  void waitForCall(const std::string& call) {
    MutexLock lock(mutex_);
    while (std::none_of(calls_.begin(), calls_.end(),
                        [&](const std::string& made) { return made.starts_with(call); }))
      changed_.wait(mutex_);
  }

  std::vector<checkpoint::PsState> held() override {
    MutexLock lock(mutex_);
    failIfTold("held");
    std::vector<checkpoint::PsState> held = held_;
    held.at(0).snapshots = snapshots_;
    return held;
  }

  std::vector<CutPosition> positions(bool hold) override {
    MutexLock lock(mutex_);
    begin("positions", hold ? " hold" : "");
    return {position_};
  }
  void releaseHold() override {
    MutexLock lock(mutex_);
    begin("releaseHold", "");
  }
  void startCut(const CutPosition& position, uint64_t) override {
    MutexLock lock(mutex_);
    interrupted_ = false;
    begin("startCut", " " + std::to_string(position.at(0)));
    if (called_off_) throw Error(ErrorCode::kUnavailable, "called off");
    target_ = position;
    too_late_ = target_ < position_;
  }
  std::optional<uint64_t> awaitCut() override {
    MutexLock lock(mutex_);
    begin("awaitCut", "");
    while (never_reached_ && !called_off_ && !interrupted_) changed_.wait(mutex_);
    if (interrupted_) throw Error(ErrorCode::kUnavailable, "interrupted");
    if (called_off_) throw Error(ErrorCode::kUnavailable, "called off");
    if (too_late_) return std::nullopt;
    position_ = std::max(position_, target_);
    return global_step_.value_or(target_.at(0));
  }
  void callOffCuts() override {
    MutexLock lock(mutex_);
    called_off_ = true;
    changed_.notifyAll();
  }
  void interruptCuts() override {
    MutexLock lock(mutex_);
    interrupted_ = true;
    changed_.notifyAll();
  }
  // Sets whether the ps finds the chief's files.
  void setSees(bool sees) {
    MutexLock lock(mutex_);
    sees_ = sees;
  }
  std::vector<bool> see(const std::string& file) override {
    MutexLock lock(mutex_);
    begin("see", "");
    return {sees_ && disk_.exists(kRunDir / "checkpoints" / file)};
  }
  checkpoint::ShardTransfer& transfer() override {
    throw Error(ErrorCode::kInternal, "this job's checkpoints don't gather");
  }
  checkpoint::StayingShards& staying() override {
    throw Error(ErrorCode::kInternal, "this job's shards don't stay");
  }

  std::vector<checkpoint::SavedShard> save(const std::string& folder, const CutPosition&) override {
    std::shared_future<void> gate;
    {
      MutexLock lock(mutex_);
      begin("save", " " + folder);
      gate = gate_;
    }
    if (gate.valid()) gate.wait();
    const std::vector<float> values(16, 1.0f);
    const checkpoint::TensorPart part{"v", Shape{16}, 0, 16, values.data()};
    checkpoint::SavedShard saved;
    saved.file = checkpoint::writeShard(disk_, kRunDir / "checkpoints" / folder, 0, 1, {&part, 1});
    saved.stall_seconds = 0.005;
    return {saved};
  }
  std::vector<checkpoint::KeptSnapshot> snapshot(
      const checkpoint::CutName& name, const CutPosition&,
      const std::optional<checkpoint::CutName>& keep) override {
    MutexLock lock(mutex_);
    begin("snapshot",
          " " + std::to_string(name.step) + (keep ? " keep " + std::to_string(keep->step) : ""));
    snapshots_ = {name};
    if (keep) snapshots_.insert(snapshots_.begin(), *keep);
    return {{64, 0.005}};
  }
  void forgetSnapshots() override {
    MutexLock lock(mutex_);
    begin("forgetSnapshots", "");
    snapshots_.clear();
  }
  void refill(const std::vector<uint32_t>& ps, uint64_t epoch) override {
    MutexLock lock(mutex_);
    begin("refill", " ps/" + std::to_string(ps.at(0)));
    held_.at(ps[0]).epoch = epoch;
  }
  void awaitReplicas(uint64_t epoch) override {
    MutexLock lock(mutex_);
    begin("awaitReplicas", "");
    if (epoch != held_.at(0).epoch) throw Error(ErrorCode::kUnavailable, "another epoch");
  }
  void restore(const checkpoint::GoingBack& target) override {
    MutexLock lock(mutex_);
    const bool to_snapshot = target.folder.empty();
    const checkpoint::CutName name{target.cut_epoch, target.cut_step};
    try {
      begin("restore",
            to_snapshot ? " snapshot " + std::to_string(name.step) : " " + target.folder);
    } catch (const Error&) {
      if (to_snapshot) std::erase(snapshots_, name);
      throw;
    }
    const auto origin =
        to_snapshot ? checkpoint::EpochOrigin::kSnapshot : checkpoint::EpochOrigin::kCheckpoint;
    held_ = {{{target.epoch, target.cut_step, origin, name}}};
  }

 private:
  void begin(const std::string& call, const std::string& more) DTF_REQUIRES(mutex_) {
    calls_.push_back(call + more);
    changed_.notifyAll();
    if (const auto slow = slow_.find(call); slow != slow_.end()) clock_.advance(slow->second);
    failIfTold(call);
  }
  void failIfTold(const std::string& call) DTF_REQUIRES(mutex_) {
    const auto failing = failing_.find(call);
    if (failing == failing_.end()) return;
    const Error error = failing->second;
    failing_.erase(failing);
    throw error;
  }

  FileSystem& disk_;
  ManualClock& clock_;
  Mutex mutex_;
  CondVar changed_;
  bool sees_ DTF_GUARDED_BY(mutex_) = true;
  bool never_reached_ DTF_GUARDED_BY(mutex_) = false;
  bool called_off_ DTF_GUARDED_BY(mutex_) = false;
  bool interrupted_ DTF_GUARDED_BY(mutex_) = false;
  std::vector<checkpoint::PsState> held_ DTF_GUARDED_BY(mutex_) = {{}};
  std::vector<checkpoint::CutName> snapshots_ DTF_GUARDED_BY(mutex_);  // outlive held_
  CutPosition position_ DTF_GUARDED_BY(mutex_) = {0};
  CutPosition target_ DTF_GUARDED_BY(mutex_) = {0};
  bool too_late_ DTF_GUARDED_BY(mutex_) = false;
  std::optional<uint64_t> global_step_ DTF_GUARDED_BY(mutex_);
  std::map<std::string, Duration> slow_ DTF_GUARDED_BY(mutex_);
  std::multimap<std::string, Error> failing_ DTF_GUARDED_BY(mutex_);
  std::shared_future<void> gate_ DTF_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::train
