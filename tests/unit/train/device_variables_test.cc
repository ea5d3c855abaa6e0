// Variables that a device holds, in a training loop. The device is the plug-in of tests/gpu, in the
// host's memory. tests/conformance/device_suite_updates.cc compares such updates with a ps's on
// every device.

#include "common/train/device_variables.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>

#include "common/base/error.h"
#include "common/train/epochs.h"
#include "common/train/worker_devices.h"
#include "tests/gpu/plugin_under_test.h"
#include "tests/unit/data/part_of.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

using cluster::OptimizerSpec;
using ::testing::HasSubstr;

class DeviceVariablesTest : public ::testing::Test {
 protected:
  DeviceVariablesTest() {
    ::setenv("DTF_GPU_PLUGIN", runtime::testing::testPluginPath("host").c_str(), 1);
  }
  ~DeviceVariablesTest() override {
    ::unsetenv("DTF_GPU_PLUGIN");
    ::unsetenv("DTF_TEST_HOST_DEVICES");
  }

  struct Trained {
    bool kept = false;
    std::vector<float> parameters;
    std::vector<float> slot;  // the last one
    double final_loss = 0;
    Evaluation evaluation;
  };
  static std::vector<std::string> gpus(int count) {
    ::setenv("DTF_TEST_HOST_DEVICES", std::to_string(count).c_str(), 1);
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back("gpu:" + std::to_string(i));
    return names;
  }
  // Returns the error of a training without a ps; it must fail as a diverging one does.
  static std::string failureOf(const cluster::TrainSpec& train,
                               const std::shared_ptr<const data::Dataset>& dataset, int towers) {
    const SystemClock clock;
    WorkerDevices devices(gpus(towers), towers, runtime::tableRule());
    exchange::LocalCluster cluster(1, 1, clock, std::chrono::seconds(20));
    exchange::LocalExchangeClient client(cluster, 0);
    TrainingLoop loop(train, {.one_process = true}, dataset, client, devices.kernels(),
                      devices.device(), clock, devices.towers());
    EXPECT_THAT(loop.placementTable(), HasSubstr("all stay on gpu:0"));
    loop.join();
    try {
      loop.run(nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTrainingFailed);
      return error.message();
    }
    return "";
  }
  // On a GPU without a ps, or with a ps in this process.
  static Trained trainOnce(const cluster::TrainSpec& train, bool one_process, int towers = 1) {
    const auto dataset = digits(data::DigitStream::kTrain, 500);
    const SystemClock clock;
    WorkerDevices devices(gpus(towers), towers, runtime::tableRule());
    exchange::LocalCluster cluster(1, 1, clock, std::chrono::seconds(20));
    exchange::LocalExchangeClient client(cluster, 0);
    TrainingLoop loop(train, {.one_process = one_process}, dataset, client, devices.kernels(),
                      devices.device(), clock, devices.towers());
    loop.evaluateOn(digits(data::DigitStream::kEval, 100));
    loop.join();
    Trained trained;
    trained.kept = loop.placementTable().find("all stay on gpu:0") != std::string::npos;
    trained.final_loss = loop.run(nullptr).final_loss.value();
    trained.evaluation = loop.evaluate();
    const uint64_t elements = loop.declaration().layout.shards[0].elements;
    client.pull();
    trained.parameters.assign(client.view(exchange::Values::kParameters, 0),
                              client.view(exchange::Values::kParameters, 0) + elements);
    cluster.ask(0, [&](shard::Shard& shard) {
      trained.slot = trainedOf(lastSlot(shard, client), loop.declaration().layout);
    });
    client.leave();
    return trained;
  }
  // Leaves out padding, whose slots nobody reads, and statistics, which have no slots.
  static std::vector<float> trainedOf(const std::vector<float>& slot,
                                      const arena::ParameterLayout& layout) {
    std::vector<float> trained;
    for (const arena::Slice& slice : layout.shards[0].slices) {
      if (slot.empty() || layout.variables[slice.variable].momentum) continue;
      const auto first = slot.begin() + static_cast<ptrdiff_t>(slice.offset);
      trained.insert(trained.end(), first, first + static_cast<ptrdiff_t>(slice.count));
    }
    return trained;
  }
  // The slot as a checkpoint has it.
  static std::vector<float> lastSlot(shard::Shard& shard,
                                     const exchange::LocalExchangeClient& client) {
    const CutPosition position = shard.cuts().position(client.incarnation(), false);
    bool is_captured = false;
    shard.cuts().cutAt(client.incarnation(), shard.status().epoch, position,
                       [&](const replication::CutAnswer& answer) {
                         is_captured = std::holds_alternative<replication::CutResult>(answer);
                       });
    EXPECT_TRUE(is_captured);
    const auto captured = shard.cuts().captured(client.incarnation(), position);
    if (captured.capture->slots.empty()) return {};
    const Buffer& slot = captured.capture->slots.back();
    return {slot.as<float>(), slot.as<float>() + slot.bytes() / sizeof(float)};
  }
};

cluster::TrainSpec normalisedJob(uint64_t steps) {
  cluster::TrainSpec train = softmaxJob(steps);
  train.replication.mode = cluster::ReplicationSpec::Mode::kSync;
  train.model.layers = {model::flatten(), model::dense("hidden", 20),
                        model::layerOf("batch_normalization", "{}", "batch_normalization"),
                        model::dense("output", 10)};
  train.optimizer.kind = OptimizerSpec::Kind::kAdam;
  train.optimizer.learning_rate = 0.01;
  return train;
}

TEST_F(DeviceVariablesTest, TrainsWithTheBitsOfAPs) {
  for (const bool averages : {false, true}) {
    for (const auto mode :
         {cluster::ReplicationSpec::Mode::kSync, cluster::ReplicationSpec::Mode::kAsync}) {
      cluster::TrainSpec train = normalisedJob(30);
      train.replication.mode = mode;
      train.eval_every_steps = 7;
      if (averages) train.optimizer.moving_average_decay = 0.5;
      const Trained kept = trainOnce(train, true), with_ps = trainOnce(train, false);
      EXPECT_TRUE(kept.kept);
      EXPECT_FALSE(with_ps.kept);
      EXPECT_EQ(kept.parameters, with_ps.parameters);
      EXPECT_EQ(kept.final_loss, with_ps.final_loss);
      EXPECT_EQ(kept.evaluation.loss, with_ps.evaluation.loss);
      EXPECT_FALSE(kept.slot.empty());
      EXPECT_EQ(kept.slot, with_ps.slot);
    }
  }
}

TEST_F(DeviceVariablesTest, SeveralGpusTrainWithTheBitsOfTowersOnTheHost) {
  for (const int towers : {2, 5}) {
    const Trained kept = trainOnce(normalisedJob(20), true, towers);
    const Trained with_ps = trainOnce(normalisedJob(20), false, towers);
    EXPECT_TRUE(kept.kept);
    EXPECT_FALSE(with_ps.kept);
    EXPECT_EQ(kept.parameters, with_ps.parameters) << towers;
    EXPECT_EQ(kept.slot, with_ps.slot) << towers;
    EXPECT_EQ(kept.final_loss, with_ps.final_loss);
    EXPECT_EQ(kept.evaluation.loss, with_ps.evaluation.loss);
  }
}

// 500 digits: the last batch of each epoch has 20.
TEST_F(DeviceVariablesTest, ShortBatchesTrainWithTheBitsOfAPs) {
  cluster::TrainSpec train = normalisedJob(0);
  train.epochs = 2;
  train.data.batch_size = 60;
  train.steps = stepsOf(train, 500, 1);
  ASSERT_EQ(train.steps, 18u);
  for (const int towers : {1, 2}) {
    const Trained kept = trainOnce(train, true, towers), with_ps = trainOnce(train, false, towers);
    EXPECT_TRUE(kept.kept);
    EXPECT_EQ(kept.parameters, with_ps.parameters) << towers;
    EXPECT_EQ(kept.slot, with_ps.slot) << towers;
    EXPECT_EQ(kept.final_loss, with_ps.final_loss);
  }
  EXPECT_FALSE(trainOnce(train, true, 3).kept) << "20 are no three equal shares";
}

// The loss of such a batch is a number: division by an infinite variance gives 0.
TEST_F(DeviceVariablesTest, AStatisticThatIsNoNumberEndsTheTraining) {
  std::vector<float> features(200, 0.5F);
  features[7] = 1e30F;
  const std::vector<uint8_t> labels(100);
  const auto dataset =
      std::make_shared<const data::Dataset>(data::partOf(data::kFeatures, Shape{2}, features),
                                            data::partOf(data::kLabels, Shape{}, labels));
  cluster::TrainSpec train = normalisedJob(10);
  train.model.layers = {model::layerOf("batch_normalization", "{}", "norm"),
                        model::dense("output", 10)};
  train.model.input_shape = {2};
  train.model.input_dtype = DType::kFloat32;
  train.data.batch_size = 100;
  for (const int towers : {1, 2}) {
    const std::string message = failureOf(train, dataset, towers);
    EXPECT_THAT(message, HasSubstr("'norm/moving_variance' is inf at element 1")) << towers;
  }
}

TEST_F(DeviceVariablesTest, ClipsByTheGlobalNormWithinRounding) {
  cluster::TrainSpec train = normalisedJob(30);
  train.optimizer.kind = OptimizerSpec::Kind::kGradientDescent;
  train.optimizer.learning_rate = 0.5;
  const Trained unclipped = trainOnce(train, true);
  train.optimizer.clip_by_global_norm = 0.5;
  const Trained kept = trainOnce(train, true), with_ps = trainOnce(train, false);
  EXPECT_TRUE(kept.kept);
  EXPECT_GT(std::abs(kept.final_loss - unclipped.final_loss), 1e-3);
  EXPECT_NEAR(kept.final_loss, with_ps.final_loss, 1e-4);
  const Trained towers = trainOnce(train, true, 2), with_host = trainOnce(train, false, 2);
  EXPECT_TRUE(towers.kept);
  EXPECT_NEAR(towers.final_loss, with_host.final_loss, 1e-4);
}

TEST_F(DeviceVariablesTest, WhatItCantKeepGoesThroughTheHost) {
  cluster::TrainSpec lamb = normalisedJob(3);
  lamb.optimizer.kind = OptimizerSpec::Kind::kLamb;
  EXPECT_FALSE(trainOnce(lamb, true).kept);
  cluster::TrainSpec several = normalisedJob(3);
  several.replication.replicas_to_aggregate = 2;
  EXPECT_FALSE(trainOnce(several, true).kept);
}

TEST_F(DeviceVariablesTest, SaysWhatItCantKeep) {
  const WorkerDevices devices({"gpu:0"}, 1, runtime::tableRule());
  const std::vector<ComputeDevice>& gpu = devices.towers().each;
  const WorkerDevices cpu({"cpu:0"}, 1, runtime::tableRule());
  arena::ParameterLayout layout = arena::makeLayout({{"table", {4, 3}, {{0, 0, 12}}}}, 1);
  OptimizerSpec optimizer;
  EXPECT_EQ(DeviceVariables::refusal(layout, optimizer, gpu), "");
  EXPECT_THAT(DeviceVariables::refusal(layout, optimizer, cpu.towers().each),
              HasSubstr("cpu:0 has no kernel"));
  optimizer.kind = OptimizerSpec::Kind::kLars;
  EXPECT_THAT(DeviceVariables::refusal(layout, optimizer, gpu), HasSubstr("lars needs the norms"));
  optimizer.kind = OptimizerSpec::Kind::kFtrl;
  optimizer.learning_rate_power = -0.4;
  EXPECT_THAT(DeviceVariables::refusal(layout, optimizer, gpu), HasSubstr("learning_rate_power"));
  layout.variables[0].is_sparse = true;
  EXPECT_THAT(DeviceVariables::refusal(layout, {}, gpu), HasSubstr("embeddings"));
  std::vector<arena::VariableParts> statistics;
  for (int i = 0; i < 256; ++i)
    statistics.push_back({"s" + std::to_string(i), {1}, {{0, 0, 1}}, i / 256.0});
  EXPECT_THAT(DeviceVariables::refusal(arena::makeLayout(statistics, 1), {}, gpu),
              HasSubstr("256 momenta"));
}

// Each read sees one version. On one device, that holds even without the shard's lock: a checkpoint
// reads so.
TEST_F(DeviceVariablesTest, IsReadWhileItIsUpdated) {
  const WorkerDevices devices({"gpu:0"}, 1, runtime::tableRule());
  const arena::ParameterLayout layout = arena::makeLayout({{"w", {1000}, {{0, 0, 1000}}}}, 1);
  OptimizerSpec optimizer;
  optimizer.kind = OptimizerSpec::Kind::kMomentum;
  DeviceVariables kept(layout, optimizer, devices.towers().each);
  const uint64_t elements = layout.shards[0].elements;
  std::vector<float> values(elements, 1), slot(elements, 1);
  const std::span<const float> slots[] = {slot};
  kept.write(values, slots);
  std::atomic<bool> done = false;
  Thread reader("reader", [&] {
    std::vector<float> read(elements);
    while (!done) {
      kept.readSlot(0, read.data());
      for (const float x : read) ASSERT_EQ(x, read[0]);
    }
  });
  optimizer::OptimizerClock clock(optimizer);
  for (int i = 0; i < 200; ++i) kept.update(clock.next());
  done = true;
  reader.join();
  kept.readSlot(0, slot.data());
  EXPECT_NEAR(slot[999], std::pow(0.9, 200), 1e-12);
}

}  // namespace
}  // namespace dtf::train
