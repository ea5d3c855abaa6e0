// Shards to files and back, by a chief's checkpointer, for a job that stops and goes on.

#include "common/host/shard_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "common/base/error.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/train/checkpointer.h"
#include "tests/support/simulated_disk.h"

namespace dtf::host {
namespace {

using Mode = cluster::ReplicationSpec::Mode;

constexpr Incarnation kChiefLife{1};
constexpr uint64_t kElements = 16;  // on each ps
const std::filesystem::path kRunDir = "/run";
const std::filesystem::path kCheckpoints = kRunDir / "checkpoints";
const std::filesystem::path kMemory = "/shm";

arena::ModelDeclaration modelOf(Mode mode, uint32_t ps_tasks, uint32_t workers, uint64_t steps) {
  arena::ModelDeclaration model;
  arena::VariableParts variable{"v", Shape{static_cast<int64_t>(ps_tasks * kElements)}, {}};
  for (uint32_t i = 0; i < ps_tasks; ++i) variable.parts.push_back({i, i * kElements, kElements});
  model.layout = arena::makeLayout({variable}, ps_tasks);
  model.optimizer.kind = cluster::OptimizerSpec::Kind::kMomentum;
  model.optimizer.learning_rate = 1;
  model.steps = steps;
  model.replication = {mode, mode == Mode::kSync ? workers : 0, mode == Mode::kSync ? workers : 0};
  return model;
}

// All ps and workers of a job in this thread, and its chief's view of them.
class Job final : public checkpoint::CheckpointClient {
 public:
  Job(FileSystem& disk, Mode mode, uint32_t workers, uint64_t steps = 1000, uint32_t ps_tasks = 2)
      : Job(disk, workers, modelOf(mode, ps_tasks, workers, steps)) {}
  Job(FileSystem& disk, uint32_t workers, const arena::ModelDeclaration& model)
      : disk_(disk), workers_(workers), model_(model) {
    const auto ps_tasks = static_cast<uint32_t>(model.layout.shards.size());
    for (uint32_t i = 0; i < ps_tasks; ++i) {
      shards_.push_back(std::make_unique<shard::Shard>(
          shard::ShardOptions{.ps_task = i, .ps_tasks = ps_tasks, .workers = workers}, clock_,
          runner_, nullptr));
      for (uint32_t rank = 0; rank < workers; ++rank) shards_[i]->workers().join(rank, kChiefLife);
      shards_[i]->workers().declare(0, kChiefLife, model_);
    }
    train::CheckpointerOptions options;
    options.job = "test";
    options.run_dir = kRunDir;
    options.incarnation = kChiefLife;
    options.workers = workers;
    options.spec.emplace();
    checkpointer_ =
        std::make_unique<train::Checkpointer>(disk, clock_, *this, model_, std::move(options));
    const std::optional<uint64_t> epoch = checkpointer_->restore();
    if (!epoch) return;
    for (const auto& shard : shards_)
      shard->initialise(0, kChiefLife, std::vector<float>(kElements), *epoch);
  }

  // Pushes to one ps.
  void push(uint32_t ps_task, uint32_t rank, uint64_t step, float gradient = -1) {
    auto values = std::make_shared<std::vector<float>>(kElements, gradient);
    shards_[ps_task]->push({.rank = rank,
                            .incarnation = kChiefLife,
                            .step = step,
                            .batch = 0,
                            .epoch = shards_[ps_task]->held().epoch,
                            .sequence = 0,
                            .gradient = *values,
                            .owner = values},
                           [](const replication::PushAnswer& answer) {
                             if (const Error* error = std::get_if<Error>(&answer)) throw *error;
                           });
  }
  // The worker's next step: granted, computed, pushed to every ps.
  void step(uint32_t rank) {
    const uint64_t next = pull(rank).next_step;
    for (uint32_t i = 0; i < shards_.size(); ++i) push(i, rank, next);
  }
  // Returns ps/0's reply to this worker's pull.
  replication::StepState pull(uint32_t rank) {
    replication::StepState state;
    shards_[0]->pull(rank, kChiefLife, {}, [&](const replication::PushAnswer& answer) {
      if (const auto* reply = std::get_if<replication::PushReply>(&answer)) state = reply->state;
    });
    return state;
  }

  // Captures ps `i` at its current position.
  shard::CapturedShard capture(uint32_t i) {
    const CutPosition position = shards_[i]->cuts().position(kChiefLife, false);
    shards_[i]->cuts().cutAt(kChiefLife, shards_[i]->held().epoch, position,
                             [](const replication::CutAnswer&) {});
    return shards_[i]->cuts().captured(kChiefLife, position);
  }
  CheckpointOptions optionsOf(uint32_t i) const {
    CheckpointOptions options{kCheckpoints, i, workers_, &disk_};
    options.job = "test";
    return options;
  }

  shard::Shard& shard(uint32_t i) { return *shards_[i]; }
  train::Checkpointer& checkpointer() { return *checkpointer_; }

  std::vector<checkpoint::PsState> held() override {
    return std::vector<checkpoint::PsState>(shards_.size());
  }
  std::vector<CutPosition> positions(bool hold) override {
    std::vector<CutPosition> all;
    for (const auto& shard : shards_) all.push_back(shard->cuts().position(kChiefLife, hold));
    return all;
  }
  void releaseHold() override {
    for (const auto& shard : shards_) shard->cuts().releaseHold(kChiefLife);
  }
  void startCut(const CutPosition& position, uint64_t epoch) override {
    cuts_.assign(shards_.size(), std::nullopt);
    for (uint32_t i = 0; i < shards_.size(); ++i)
      shards_[i]->cuts().cutAt(
          kChiefLife, epoch, position,
          [this, i](const replication::CutAnswer& answer) { cuts_[i] = answer; });
  }
  std::optional<uint64_t> awaitCut() override {
    for (const std::optional<replication::CutAnswer>& cut : cuts_) {
      if (!cut) throw Error(ErrorCode::kDeadline, "a ps has not reached the cut");
      if (const Error* error = std::get_if<Error>(&*cut)) throw *error;
      if (std::get<replication::CutResult>(*cut).outcome == replication::CutOutcome::kTooLate)
        return std::nullopt;
    }
    return std::get<replication::CutResult>(*cuts_[0]).version;
  }
  void callOffCuts() override {}  // no cut waits here
  void interruptCuts() override {}
  std::vector<bool> see(const std::string&) override {
    return std::vector<bool>(shards_.size(), true);
  }
  checkpoint::ShardTransfer& transfer() override {
    throw Error(ErrorCode::kInternal, "this job's checkpoints don't gather");
  }
  checkpoint::StayingShards& staying() override {
    throw Error(ErrorCode::kInternal, "this job's shards don't stay");
  }
  std::vector<checkpoint::SavedShard> save(const std::string& folder,
                                           const CutPosition& position) override {
    std::vector<checkpoint::SavedShard> saved;
    for (uint32_t i = 0; i < shards_.size(); ++i)
      saved.push_back(saveShard(disk_, kCheckpoints / folder, i,
                                shards_[i]->cuts().captured(kChiefLife, position)));
    return saved;
  }
  std::vector<checkpoint::KeptSnapshot> snapshot(
      const checkpoint::CutName& name, const CutPosition& position,
      const std::optional<checkpoint::CutName>& keep) override {
    std::vector<checkpoint::KeptSnapshot> kept;
    for (uint32_t i = 0; i < shards_.size(); ++i) {
      checkpoint::SnapshotFolder folder(disk_, {kMemory}, i);
      kept.push_back(saveSnapshot(folder, name, keep, optionsOf(i),
                                  shards_[i]->cuts().captured(kChiefLife, position)));
    }
    return kept;
  }
  void forgetSnapshots() override {}
  void awaitReplicas(uint64_t) override {}
  void refill(const std::vector<uint32_t>&, uint64_t) override {
    throw Error(ErrorCode::kUnavailable, "no replicas are kept here");
  }
  void restore(const checkpoint::GoingBack& target) override {
    for (uint32_t i = 0; i < shards_.size(); ++i) {
      const checkpoint::SnapshotFolder folder(disk_, {kMemory}, i);
      shard::RestoredShard state =
          target.folder.empty()
              ? restoreSnapshot(folder, {target.cut_epoch, target.cut_step}, optionsOf(i), model_)
              : restoreShard(disk_, kCheckpoints / target.folder, i, model_, workers_);
      state.epoch = target.epoch;
      state.origin_cut = {target.cut_epoch, target.cut_step};
      shards_[i]->recovery().restore(kChiefLife, state);
    }
  }

 private:
  FileSystem& disk_;
  const uint32_t workers_;
  const arena::ModelDeclaration model_;
  ManualClock clock_;
  optimizer::InlineUpdateRunner runner_;
  std::vector<std::unique_ptr<shard::Shard>> shards_;
  std::vector<std::optional<replication::CutAnswer>> cuts_;
  std::unique_ptr<train::Checkpointer> checkpointer_;
};

std::vector<float> valuesOf(const Buffer& arena) {
  return {arena.as<float>(), arena.as<float>() + arena.bytes() / sizeof(float)};
}

class ShardFiles : public ::testing::Test {
 protected:
  ShardFiles() {
    disk_.makeFolder(kRunDir);
    disk_.syncFolder("/");
  }

  // Saves at rest; returns the checkpoint's step.
  uint64_t save(Job& job) {
    const auto saved = job.checkpointer().save(train::Motion::kAtRest);
    EXPECT_TRUE(saved);
    return saved ? saved->global_step : 0;
  }
  checkpoint::Manifest newest() {
    return checkpoint::CheckpointFolder(disk_, kCheckpoints, Incarnation{9})
        .latestValid()
        .found->manifest;
  }

  testing::SimulatedDisk disk_;
};

// ---- a checkpoint's step is the step of its parameters

TEST_F(ShardFiles, FromSyncToAsyncTheStepGoesOnWhereItWas) {
  Job before(disk_, Mode::kSync, 2);
  for (uint64_t step = 0; step < 10; ++step)
    for (uint32_t rank = 0; rank < 2; ++rank) before.step(rank);
  ASSERT_EQ(save(before), 10u);

  Job job(disk_, Mode::kAsync, 2);
  EXPECT_EQ(job.pull(0).global_step, 10u);
  EXPECT_EQ(job.pull(0).next_step, 10u) << "each has taken a batch in every step";
  for (int i = 0; i < 3; ++i) job.step(0);
  EXPECT_EQ(save(job), 13u);
  EXPECT_EQ(newest().worker_batches, (std::vector<uint64_t>{13, 10}));

  Job after(disk_, Mode::kAsync, 2);
  EXPECT_EQ(after.pull(0).global_step, 13u);
  EXPECT_EQ(after.pull(0).next_step, 13u);
  EXPECT_EQ(after.pull(1).next_step, 10u);
}

TEST_F(ShardFiles, WithAnotherNumberOfWorkersNoStepIsSkipped) {
  Job before(disk_, Mode::kAsync, 2);
  for (int i = 0; i < 10; ++i) before.step(0);
  ASSERT_EQ(save(before), 10u);
  uint64_t step = 10;
  for (const uint32_t workers : {3, 4, 3}) {
    SCOPED_TRACE(std::to_string(workers) + " workers");
    Job job(disk_, Mode::kAsync, workers);
    EXPECT_EQ(job.pull(0).global_step, step);
    job.step(0);
    EXPECT_EQ(save(job), ++step);
  }
}

TEST_F(ShardFiles, APushThatOnlyOnePsHasIsNotCounted) {
  Job job(disk_, Mode::kAsync, 2, 6);
  for (int i = 0; i < 3; ++i) job.step(0);
  job.pull(1);
  job.push(1, 1, 0);  // to ps/1, and then it dies
  for (uint32_t i = 0; i < 2; ++i) job.shard(i).workers().markLost(1);
  EXPECT_EQ(save(job), 3u) << "what ps/0 has";
  EXPECT_EQ(newest().worker_batches, (std::vector<uint64_t>{3, 1}));

  Job after(disk_, Mode::kAsync, 2, 6);
  for (int i = 0; i < 3; ++i) after.step(0);
  EXPECT_EQ(after.pull(0).global_step, 6u) << "the job has had all its steps";
  EXPECT_TRUE(after.pull(0).done);
}

TEST_F(ShardFiles, AJobOfFewerStepsThanItsCheckpointIsDoneAndHasNothingToSave) {
  Job before(disk_, Mode::kSync, 1);
  for (int i = 0; i < 5; ++i) before.step(0);
  ASSERT_EQ(save(before), 5u);
  Job shorter(disk_, Mode::kSync, 1, 3);
  EXPECT_TRUE(shorter.pull(0).done);
  EXPECT_FALSE(shorter.checkpointer().save(train::Motion::kAtRest));
  EXPECT_EQ(newest().global_step, 5u);
}

// ---- moving averages, which the optimizer does not change

TEST_F(ShardFiles, AMovingAverageIsSavedWithoutSlotsAndGoesOnWithTheSameBits) {
  arena::ModelDeclaration model = modelOf(Mode::kSync, 2, 1, 1000);
  const Shape shape{int64_t{kElements}};
  model.layout = arena::makeLayout(
      {{"w", shape, {{0, 0, kElements}}}, {"moving_mean", shape, {{1, 0, kElements}}, 0.75}}, 2);
  model.optimizer.moving_average_decay = 0.5;
  Job before(disk_, 1, model);
  for (int i = 0; i < 3; ++i) before.step(0);
  ASSERT_EQ(save(before), 3u);
  const std::vector<std::string> slots = {"Momentum", "ExponentialMovingAverage"};
  const std::vector<checkpoint::VariableInfo> saved = newest().variables;
  ASSERT_EQ(saved.size(), 2u);
  EXPECT_EQ(saved[0], (checkpoint::VariableInfo{"w", shape, slots}));
  EXPECT_EQ(saved[1], (checkpoint::VariableInfo{"moving_mean", shape, {}}));

  Job after(disk_, 1, model);
  for (Job* job : {&before, &after}) job->step(0);
  for (const uint32_t ps : {0u, 1u}) {
    const shard::CapturedShard one = before.capture(ps), other = after.capture(ps);
    const auto values = [](const shard::CapturedShard& captured) {
      const float* const data = captured.capture->parameters->data();
      return std::vector<float>(data, data + kElements);
    };
    EXPECT_EQ(values(one), values(other));
    ASSERT_EQ(other.capture->slots.size(), slots.size());
    for (size_t i = 0; i < slots.size(); ++i)
      EXPECT_EQ(valuesOf(one.capture->slots[i]), valuesOf(other.capture->slots[i])) << slots[i];
  }
  EXPECT_LT(after.capture(1).capture->parameters->data()[0], -0.5f) << "moved towards -1";
}

// ---- snapshots

TEST_F(ShardFiles, ASnapshotIsTheWholeStateOfOneShard) {
  for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
    SCOPED_TRACE(mode == Mode::kSync ? "sync" : "async");
    testing::SimulatedDisk disk;
    disk.makeFolder(kRunDir);
    Job job(disk, mode, 2);
    for (uint64_t step = 0; step < 3; ++step)
      for (uint32_t rank = 0; rank < 2; ++rank) job.step(rank);
    const shard::CapturedShard captured = job.capture(1);
    const checkpoint::CutName name{replication::kFirstEpoch, captured.capture->version};
    checkpoint::SnapshotFolder folder(disk, {kMemory}, 1);
    const checkpoint::KeptSnapshot kept =
        saveSnapshot(folder, name, std::nullopt, job.optionsOf(1), captured);
    EXPECT_GT(kept.bytes, 2 * kElements * sizeof(float)) << "values and momentum";

    const shard::RestoredShard state =
        restoreSnapshot(folder, name, job.optionsOf(1), captured.declaration);
    const replication::Capture& capture = *captured.capture;
    EXPECT_EQ(state.origin, checkpoint::EpochOrigin::kSnapshot);
    EXPECT_EQ(state.position, capture.position);
    EXPECT_EQ(state.step, capture.version);
    EXPECT_EQ(state.clock.applies, capture.clock.applies);
    EXPECT_EQ(valuesOf(state.values), std::vector<float>(capture.parameters->data(),
                                                         capture.parameters->data() + kElements));
    ASSERT_EQ(state.slots.size(), 1u);
    EXPECT_EQ(valuesOf(state.slots[0]), valuesOf(capture.slots[0]));
    EXPECT_NE(valuesOf(state.slots[0])[0], 0.0f);
  }
}

TEST_F(ShardFiles, ASnapshotOfAnotherModelIsNotLoaded) {
  Job job(disk_, Mode::kSync, 1);
  job.step(0);
  const shard::CapturedShard captured = job.capture(0);
  checkpoint::SnapshotFolder folder(disk_, {kMemory}, 0);
  const checkpoint::CutName name{replication::kFirstEpoch, 1};
  saveSnapshot(folder, name, std::nullopt, job.optionsOf(0), captured);
  const auto refusal = [&](const CheckpointOptions& options, const arena::ModelDeclaration& model) {
    try {
      restoreSnapshot(folder, name, options, model);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      return error.message();
    }
    return std::string("loaded");
  };
  EXPECT_EQ(refusal(job.optionsOf(0), captured.declaration), "loaded");
  EXPECT_THAT(refusal(job.optionsOf(0), modelOf(Mode::kSync, 1, 1, 1000)),
              ::testing::HasSubstr("is of the model"));
  // ps/0's snapshot is not ps/1's.
  EXPECT_THAT(refusal(job.optionsOf(1), captured.declaration),
              ::testing::HasSubstr("is of the model"));
}

// ---- values that are not written

TEST_F(ShardFiles, WhatIsNotFiniteIsNotWrittenAndTheLastOneStays) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    SCOPED_TRACE(bad);
    testing::SimulatedDisk disk;
    disk.makeFolder(kRunDir);
    Job job(disk, Mode::kAsync, 1);
    job.step(0);
    ASSERT_EQ(save(job), 1u);
    job.pull(0);
    job.push(0, 0, 1);
    job.push(1, 0, 1, bad);
    try {
      job.checkpointer().save(train::Motion::kAtRest);
      FAIL() << "it was saved";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTrainingFailed);
      EXPECT_NE(error.message().find("'v' on ps/1 has "), std::string::npos) << error.message();
      EXPECT_NE(error.message().find("at element 16"), std::string::npos) << error.message();
    }
    checkpoint::CheckpointFolder folder(disk, kCheckpoints, Incarnation{9});
    EXPECT_EQ(folder.steps(), std::vector<uint64_t>{1});
    EXPECT_EQ(disk.list(kCheckpoints).size(), 1u) << "the attempt is gone";
  }
}

TEST_F(ShardFiles, APsWhoseDiskIsFullIsNamed) {
  Job job(disk_, Mode::kAsync, 1);
  job.step(0);
  disk_.failAll(testing::SimulatedDisk::Op::kWrite, ENOSPC);
  try {
    job.checkpointer().save(train::Motion::kAtRest);
    FAIL() << "it was saved";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
    EXPECT_TRUE(error.message().starts_with("ps/0: ")) << error.message();
    EXPECT_NE(error.message().find("No space left"), std::string::npos) << error.message();
  }
}

TEST_F(ShardFiles, ASlotIsLookedAtToo) {
  Job job(disk_, Mode::kAsync, 1);
  job.step(0);
  ASSERT_TRUE(job.shard(0).status().initialised);
  job.startCut({1}, job.shard(0).held().epoch);
  ASSERT_EQ(job.awaitCut(), 1u);
  const shard::CapturedShard captured = job.shard(0).cuts().captured(kChiefLife, {1});
  ASSERT_EQ(captured.capture->slots.size(), 1u);
  auto spoiled = std::make_shared<replication::Capture>();
  spoiled->position = captured.capture->position;
  spoiled->parameters = captured.capture->parameters;
  spoiled->clock = captured.capture->clock;
  spoiled->slots.emplace_back(kElements * sizeof(float));
  std::fill_n(spoiled->slots[0].as<float>(), kElements, 0.5f);
  spoiled->slots[0].as<float>()[3] = std::numeric_limits<float>::infinity();
  try {
    saveShard(disk_, kRunDir, 0, {spoiled, captured.declaration});
    FAIL() << "it was saved";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("'v/Momentum' on ps/0 has inf at element 3"), std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace dtf::host
