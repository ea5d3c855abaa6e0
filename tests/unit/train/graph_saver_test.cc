#include "common/train/graph_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "common/base/error.h"
#include "common/checkpoint/restore.h"
#include "common/engine/local_tasks.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/optimizer/minimize.h"
#include "common/optimizer/optimizer_text.h"
#include "common/train/saved_model.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/model/models.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFolder[] = "/run/checkpoints";

// Notes the variables that are set.
// Owns: the tasks. Borrows: the names. Threads, blocking, errors: as Tasks.
class NotedTasks final : public engine::Tasks {
 public:
  NotedTasks(std::unique_ptr<engine::Tasks> tasks, std::vector<std::string>& set)
      : tasks_(std::move(tasks)), set_(set) {}
  const std::vector<graph::DeviceName>& devices() const override { return tasks_->devices(); }
  bool canRun(const graph::Node& node, const graph::DeviceName& device) const override {
    return tasks_->canRun(node, device);
  }
  bool withCpu(const UseCpu& use) override { return tasks_->withCpu(use); }
  std::unique_ptr<engine::PlanParts> registerPlan(std::vector<engine::TaskPart> parts) override {
    return tasks_->registerPlan(std::move(parts));
  }
  void setVariable(const graph::Node& variable, const Tensor& value) override {
    set_.push_back(variable.name);
    tasks_->setVariable(variable, value);
  }
  void abortSteps(const Error& cause) override { tasks_->abortSteps(cause); }
  void reset(const std::string& container) override { tasks_->reset(container); }
  engine::RendezvousLoad load() const override { return tasks_->load(); }

 private:
  const std::unique_ptr<engine::Tasks> tasks_;
  std::vector<std::string>& set_;
};

// A graph on one device of this process. loss = sum(w^2).
class GraphSaverTest : public ::testing::Test {
 protected:
  GraphSaverTest() { disk_.makeFolder("/run"); }
  std::unique_ptr<engine::Session> open(const graph::Graph& graph) {
    const engine::SessionDevice device{graph::fullDevice({JobKind::kWorker, 0}), &device_,
                                       &kernels_};
    return std::make_unique<engine::Session>(graph, std::vector{device});
  }
  void minimize(const std::string& optimizer) {
    const Output w = b_.variable("w", Shape{3}, "ones");
    const optimizer::Minimized made =
        optimizer::minimize(graph_, b_.sum(b_.mul(w, w)), optimizer::decodeOptimizer(optimizer));
    train_ = {graph_.node(made.train.node).name};
  }
  static std::vector<float> valuesOf(engine::Session& session, const std::string& name) {
    const std::vector<std::string> fetch = {name};
    const std::vector<Tensor> values = session.run({}, fetch);
    const auto all = values[0].as<float>();
    return {all.begin(), all.end()};
  }
  static int64_t countOf(engine::Session& session, const std::string& name) {
    const std::vector<std::string> fetch = {name};
    return session.run({}, fetch)[0].as<int64_t>()[0];
  }

  testing::SimulatedDisk disk_;
  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  std::vector<std::string> train_;
  GraphSaver saver_{disk_, {}};
};

TEST_F(GraphSaverTest, SlotsCountersAndTheClockComeAlong) {
  minimize("adam");
  b_.node("Variable", {},
          {{"shape", Shape()}, {"dtype", DType::kInt64}, {"initializer", std::string("zeros")}},
          "games");
  const auto session = open(graph_);
  session->initialize(1);
  Tensor games(DType::kInt64, Shape());
  games.as<int64_t>()[0] = (int64_t{1} << 60) + 1;
  session->setVariable("games", games);
  for (int step = 0; step < 2; ++step) session->run({}, {}, train_);
  EXPECT_EQ(saver_.save(*session, kFolder), "/run/checkpoints/step-2");

  const checkpoint::Manifest manifest = checkpoint::readManifest(disk_, "/run/checkpoints/step-2");
  ASSERT_EQ(manifest.variables.size(), 1u);
  EXPECT_EQ(manifest.variables[0], (checkpoint::VariableInfo{"w", Shape{3}, {"Adam", "Adam_1"}}));
  EXPECT_EQ(manifest.optimizer, "adam");
  ASSERT_EQ(manifest.clocks.size(), 1u);
  EXPECT_EQ(manifest.clocks[0].applies, 2u);
  EXPECT_EQ(manifest.clocks[0].beta1_power, 0.9 * 0.9);

  const auto other = open(graph_);
  EXPECT_EQ(saver_.restore(*other, kFolder), 2u);
  EXPECT_EQ(countOf(*other, "games"), games.as<int64_t>()[0]);
  EXPECT_EQ(countOf(*other, "global_step"), 2);
  for (const char* const name : {"w", "w/Adam", "w/Adam_1"})
    EXPECT_EQ(valuesOf(*other, name), valuesOf(*session, name));
  EXPECT_EQ(saver_.latest(kFolder), std::filesystem::path("/run/checkpoints/step-2"));
}

// As dtf-launch export and eval read it.
TEST_F(GraphSaverTest, TheModelOfAJobReadsIt) {
  const Output w = b_.variable("softmax/weights", Shape{784, 10}, "glorot_uniform");
  const Output bias = b_.variable("softmax/biases", Shape{10}, "ones");
  const Output x = b_.constant(Shape{1, 784}, 0.5);
  optimizer::minimize(graph_, b_.sum(b_.biasAdd(b_.matMul(x, w), bias)),
                      optimizer::decodeOptimizer("momentum"));
  const auto session = open(graph_);
  session->initialize(3);
  saver_.save(*session, kFolder);
  const SavedModel saved = loadSavedModel(disk_, kFolder, "", model::softmaxModel());
  EXPECT_EQ(saved.step, 0u);
  const auto weights = saved.variables.at(0).value.as<float>();
  EXPECT_EQ(std::vector<float>(weights.begin(), weights.end()),
            valuesOf(*session, "softmax/weights"));
  EXPECT_EQ(saved.variables.at(1).value.as<float>()[9], 1);
}

// Its file has no counters, and more variables.
TEST_F(GraphSaverTest, ACheckpointOfAJobWillDo) {
  const std::vector<float> w = {1, 2, 3}, more = {4};
  checkpoint::CheckpointFolder folder(disk_, kFolder, Incarnation::ofNow());
  folder.prepare();
  const std::string attempt = folder.beginAttempt(7);
  checkpoint::Manifest manifest;
  manifest.job = "other";
  manifest.global_step = 7;
  manifest.variables = {{"w", Shape{3}, {"Momentum"}}, {"more", Shape{1}, {}}};
  manifest.shards = {checkpoint::writeShard(
      disk_, folder.path() / attempt, 0, 1,
      std::vector<checkpoint::TensorPart>{{"w", Shape{3}, 0, 3, w.data()},
                                          {"w/Momentum", Shape{3}, 0, 3, w.data()},
                                          {"more", Shape{1}, 0, 1, more.data()}})};
  folder.commit(manifest);
  minimize("momentum");
  const auto session = open(graph_);
  EXPECT_EQ(saver_.restore(*session, "/run/checkpoints/step-7"), 7u);
  EXPECT_EQ(countOf(*session, "global_step"), 7);
  EXPECT_EQ(valuesOf(*session, "w/Momentum"), w);
}

// The variables have taken the steps of the job, and the job goes on from the steps of the graph.
TEST_F(GraphSaverTest, ACheckpointOfAJobBeginsSynchronousReplicas) {
  const auto parameters = [](const std::vector<float>& weights, const std::vector<float>& biases,
                             const std::vector<float>& slot) {
    return std::vector<checkpoint::TensorPart>{
        {"softmax/weights", Shape{784, 10}, 0, weights.size(), weights.data()},
        {"softmax/weights/Momentum", Shape{784, 10}, 0, weights.size(), weights.data()},
        {"softmax/biases", Shape{10}, 0, biases.size(), biases.data()},
        {"softmax/biases/Momentum", Shape{10}, 0, slot.size(), slot.data()}};
  };
  const std::vector<float> weights(7840, 0.5F), biases(10, 2), slot(10, 4);
  checkpoint::CheckpointFolder folder(disk_, kFolder, Incarnation::ofNow());
  folder.prepare();
  const std::string attempt = folder.beginAttempt(7);
  checkpoint::Manifest manifest;
  manifest.job = "digits";
  manifest.global_step = 7;
  manifest.variables = {{"softmax/weights", Shape{784, 10}, {"Momentum"}},
                        {"softmax/biases", Shape{10}, {"Momentum"}}};
  manifest.shards = {checkpoint::writeShard(disk_, folder.path() / attempt, 0, 1,
                                            parameters(weights, biases, slot))};
  folder.commit(manifest);

  const Output w = b_.variable("softmax/weights", Shape{784, 10}, "zeros");
  const Output bias = b_.variable("softmax/biases", Shape{10}, "zeros");
  const Output x = b_.constant(Shape{1, 784}, 0.5);
  const auto made =
      optimizer::minimize(graph_, b_.sum(b_.biasAdd(b_.matMul(x, w), bias)),
                          optimizer::decodeOptimizer("momentum learning_rate=0.5 momentum=0.5"),
                          {.replicas = optimizer::SyncReplicas{1, 1, 0}});
  const auto session = open(graph_);
  EXPECT_EQ(saver_.restore(*session, kFolder), 7u);
  EXPECT_EQ(countOf(*session, "softmax/weights/sync_step"), 7);
  EXPECT_EQ(countOf(*session, "softmax/biases/sync_step"), 7);
  EXPECT_EQ(countOf(*session, graph_.node(made.train.node).name), 8) << "a step";
  EXPECT_EQ(valuesOf(*session, "softmax/biases/Momentum")[0], 3);
  EXPECT_EQ(saver_.save(*session, kFolder), std::filesystem::path(kFolder) / "step-8");

  const SavedModel back = loadSavedModel(disk_, kFolder, "", model::softmaxModel());
  EXPECT_EQ(back.step, 8u);
  EXPECT_EQ(back.variables.at(1).value.as<float>()[9], 0.5F);
  const auto again = open(graph_);
  EXPECT_EQ(saver_.restore(*again, kFolder), 8u);
  EXPECT_EQ(countOf(*again, "softmax/weights/sync_step"), 8);
}

TEST_F(GraphSaverTest, WhatTheCheckpointLacksIsListed) {
  minimize("momentum");
  const auto session = open(graph_);
  session->initialize(1);
  saver_.save(*session, kFolder);
  graph::Graph other(graph::standardOps());
  graph::Builder b(other);
  b.variable("w", Shape{4});
  b.variable("bias", Shape{1});
  const auto second = open(other);
  EXPECT_THAT(errorText([&] { saver_.restore(*second, kFolder); }),
              AllOf(HasSubstr("step-0 is a checkpoint of another graph:"),
                    HasSubstr("w has shape [3] in the checkpoint, [4] in this graph"),
                    HasSubstr("the checkpoint lacks bias [1]")));
  EXPECT_THAT(errorText([&] { saver_.save(*second, kFolder); }), HasSubstr("has no value yet"));
  second->initialize(1);
  EXPECT_THAT(errorText([&] { saver_.save(*second, kFolder); }), HasSubstr("give the step"));
  EXPECT_EQ(saver_.save(*second, kFolder, 5), "/run/checkpoints/step-5");
}

TEST_F(GraphSaverTest, AStepIsSavedAgainOnlyWithTheSameValues) {
  minimize("momentum");
  const auto session = open(graph_);
  session->initialize(1);
  saver_.save(*session, kFolder);
  EXPECT_EQ(saver_.save(*session, kFolder), "/run/checkpoints/step-0");
  Tensor w(DType::kFloat32, Shape{3});
  w.as<float>()[0] = 9;
  session->setVariable("w", w);
  EXPECT_THAT(errorText([&] { saver_.save(*session, kFolder); }),
              AllOf(HasSubstr("step-0 with other values"), HasSubstr("another folder")));
}

TEST_F(GraphSaverTest, ValuesThatAreNotFiniteAreNotSaved) {
  minimize("momentum");
  const auto session = open(graph_);
  session->initialize(1);
  Tensor w(DType::kFloat32, Shape{3});
  w.as<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  session->setVariable("w", w);
  EXPECT_THAT(errorText([&] { saver_.save(*session, kFolder); }),
              AllOf(HasSubstr("'w' is nan at element 2"), HasSubstr("nothing was saved")));
  EXPECT_EQ(saver_.latest(kFolder), std::nullopt);
}

TEST_F(GraphSaverTest, DamageIsNamedAndTheOneBeforeIsTaken) {
  minimize("momentum");
  const auto session = open(graph_);
  session->initialize(1);
  saver_.save(*session, kFolder);
  session->run({}, {}, train_);
  saver_.save(*session, kFolder);
  disk_.removeFile("/run/checkpoints/step-1/shard-0-of-1.safetensors");
  EXPECT_THAT(errorText([&] { saver_.restore(*session, "/run/checkpoints/step-1"); }),
              AllOf(HasSubstr("step-1 can't be used"), HasSubstr("shard-0-of-1")));
  for (const bool restores : {true, false}) {
    ::testing::internal::CaptureStderr();
    if (restores)
      EXPECT_EQ(saver_.restore(*session, kFolder), 0u);
    else
      EXPECT_EQ(saver_.latest(kFolder), std::filesystem::path("/run/checkpoints/step-0"));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                AllOf(HasSubstr("event=checkpoint_rejected step=1"), HasSubstr("shard-0-of-1")));
  }
  EXPECT_THAT(errorText([&] { saver_.restore(*session, "/run/nowhere"); }),
              HasSubstr("there is no checkpoint in /run/nowhere"));
}

TEST_F(GraphSaverTest, KeepsTheNewestAlone) {
  GraphSaver two(disk_, {.max_to_keep = 2});
  minimize("momentum");
  const auto session = open(graph_);
  session->initialize(1);
  for (int step = 0; step < 4; ++step) {
    two.save(*session, kFolder);
    session->run({}, {}, train_);
  }
  checkpoint::CheckpointFolder folder(disk_, kFolder, Incarnation::ofNow());
  EXPECT_THAT(folder.steps(), ElementsAre(2u, 3u));
}

// An abandoned run left them.
TEST_F(GraphSaverTest, NewerCheckpointsDoNotTakeThePlaceOfTheOneThatIsSaved) {
  GraphSaver two(disk_, {.max_to_keep = 2});
  minimize("momentum");
  const auto session = open(graph_);
  session->initialize(1);
  const auto saveAt = [&](int64_t step) {
    Tensor count(DType::kInt64, Shape());
    count.as<int64_t>()[0] = step;
    session->setVariable("global_step", count);
    ::testing::internal::CaptureStderr();
    two.save(*session, kFolder);
    return ::testing::internal::GetCapturedStderr();
  };
  for (const int64_t step : {7, 8}) EXPECT_THAT(saveAt(step), Not(HasSubstr("newer_checkpoint")));
  checkpoint::CheckpointFolder folder(disk_, kFolder, Incarnation::ofNow());
  for (const uint64_t step : {3u, 4u}) {
    EXPECT_THAT(saveAt(static_cast<int64_t>(step)),
                AllOf(HasSubstr("event=newer_checkpoint"), HasSubstr("checkpoints/step-8")));
    EXPECT_THAT(folder.steps(), ElementsAre(step, 7u, 8u));
  }
}

// It voids what other clients have begun with the values before.
TEST_F(GraphSaverTest, TheGlobalStepIsRestoredLast) {
  const Output w = b_.variable("w", Shape{3}, "ones");
  optimizer::minimize(graph_, b_.sum(b_.mul(w, w)), optimizer::decodeOptimizer("adam"),
                      {.replicas = optimizer::SyncReplicas{1, 1, 0}});
  const auto process = std::make_shared<engine::LocalProcess>(std::vector{
      engine::SessionDevice{graph::fullDevice({JobKind::kWorker, 0}), &device_, &kernels_}});
  std::vector<std::string> set;
  engine::Session session(
      graph_, std::make_unique<NotedTasks>(std::make_unique<engine::LocalTasks>(process), set));
  session.initialize(1);
  saver_.save(session, kFolder);
  saver_.restore(session, kFolder);
  EXPECT_THAT(set, ElementsAre("w", "w/Adam", "w/Adam_1", "w/sync_step", "global_step"));
}

TEST_F(GraphSaverTest, ANegativeGlobalStepNamesNoCheckpoint) {
  minimize("momentum");
  const auto session = open(graph_);
  session->initialize(1);
  Tensor count(DType::kInt64, Shape());
  count.as<int64_t>()[0] = -1;
  session->setVariable("global_step", count);
  EXPECT_THAT(errorText([&] { saver_.save(*session, kFolder); }),
              AllOf(HasSubstr("'global_step' is -1"), HasSubstr("0 or more")));
  EXPECT_EQ(saver_.latest(kFolder), std::nullopt);
}

}  // namespace
}  // namespace dtf::train
