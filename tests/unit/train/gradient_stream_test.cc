#include "common/train/gradient_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/unit/train/job.h"
#include "tests/unit/train/streaming_client.h"

namespace dtf::train {
namespace {

const std::shared_ptr<const data::Dataset>& someDigits() {
  static const auto dataset = digits(data::DigitStream::kTrain, 2000);
  return dataset;
}

// The first layer's weights are split over two ps.
cluster::TrainSpec networkJob(uint64_t steps) {
  cluster::TrainSpec train = softmaxJob(steps);
  train.model.layers = {model::flatten(), model::dense("first", 300, model::Activation::kRelu),
                        model::dense("second", 500, model::Activation::kRelu),
                        model::dense("softmax", 10)};
  train.optimizer.learning_rate = 0.1;
  train.placement.partition_min_bytes = 900'000;
  train.replication.mode = cluster::ReplicationSpec::Mode::kSync;
  return train;
}

struct Trained {
  std::vector<std::vector<float>> parameters;  // by ps
  int started = 0, times_told = 0;
};

// A training with a client that takes gradients while they are written, or takes them whole.
class StreamedTraining : public ::testing::Test {
 protected:
  static constexpr uint32_t kPs = 2;

  void start(const cluster::TrainSpec& train, bool streams) {
    client_.streams = streams;
    loop_.emplace(train, WorkerPlace{0, 1, kPs}, someDigits(), client_, kernels_, device_, clock_);
    loop_->join();
  }
  Trained run() {
    loop_->run(nullptr);
    client_.pull();
    Trained trained{{}, client_.started, client_.times_told};
    for (uint32_t ps = 0; ps < kPs; ++ps)
      trained.parameters.emplace_back(client_.view(exchange::Values::kParameters, ps),
                                      client_.view(exchange::Values::kParameters, ps) +
                                          loop_->declaration().layout.shards[ps].elements);
    return trained;
  }

  const SystemClock clock_{};
  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  exchange::LocalCluster cluster_{kPs, 1, clock_, std::chrono::seconds(20)};
  StreamingClient client_{cluster_};
  std::optional<TrainingLoop> loop_;
};

Trained trainedWhole(const cluster::TrainSpec& train) {
  const JobResult job = runJob(train, {2, 1}, someDigits());
  return {job.parameters, 0, 0};
}

TEST_F(StreamedTraining, ItsParametersHaveTheBitsOfGradientsThatAreWhole) {
  const cluster::TrainSpec train = networkJob(20);
  start(train, true);
  const Trained streamed = run();
  EXPECT_EQ(streamed.started, 20);
  EXPECT_GE(streamed.times_told, 40) << "some of each, and its end";
  EXPECT_EQ(streamed.parameters, trainedWhole(train).parameters);
}

TEST_F(StreamedTraining, AClientThatWantsWholeGradientsGetsThem) {
  start(networkJob(3), false);
  EXPECT_EQ(run().started, 0);
}

TEST_F(StreamedTraining, WhatIsDoneToAGradientOnceItIsWholeKeepsItFromLeaving) {
  cluster::TrainSpec train = networkJob(3);
  train.optimizer.clip_by_global_norm = 0.01;
  start(train, true);
  const Trained clipped = run();
  EXPECT_EQ(clipped.started, 0);
  EXPECT_EQ(clipped.parameters, trainedWhole(train).parameters);
}

TEST_F(StreamedTraining, ALossThatIsNoNumberStartsNoPush) {
  cluster::TrainSpec train = networkJob(100);
  train.optimizer.learning_rate = 1e30;
  start(train, true);
  EXPECT_THROW(run(), Error);
  EXPECT_FALSE(client_.abandoned.has_value()) << *client_.abandoned;
  EXPECT_LT(client_.started, 100);
}

// The step fails in onGradients(), when most of its gradient has been sent.
TEST_F(StreamedTraining, AStepThatFailsOnItsWayIsAbandonedBeforeItIsWhole) {
  start(networkJob(100), true);
  struct Observer final : StepObserver {
    void onParameters(const replication::StepState&, ParameterBinding&, bool) override {}
    void onGradients(ParameterBinding&, const ComputedBatch&) override {
      throw Error(ErrorCode::kCannotWrite, "the disk is full");
    }
    void onEvaluation(uint64_t, const Evaluation&) override {}
  } observer;
  loop_->observe(&observer);
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(client_.abandoned, "the disk is full");
  EXPECT_FALSE(client_.is_whole) << "a ps could have taken it";
}

// The failure comes before anything of the batch is computed or pushed.
TEST_F(StreamedTraining, WhatFailsAheadOfABatchAbandonsNothing) {
  start(networkJob(100), true);
  client_.next_batch = 1;
  try {
    run();
    FAIL() << "it has no such batch";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData) << error.message();
  }
  EXPECT_EQ(client_.started, 1);
  EXPECT_FALSE(client_.abandoned.has_value());
}

// The first gradients that a network computes lie at the start of each arena; the very end waits
// for complete().
TEST(GradientStream, TellsOfWhatIsMadeFromTheFirstOnAndOfTheEndLast) {
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"first", Shape{100}, {{0, 0, 50}, {1, 50, 50}}},
                                    {"second", Shape{20}, {{1, 0, 20}}},
                                    {"third", Shape{40}, {{0, 0, 40}}}},
                                   2);
  model.steps = 10;
  const SystemClock clock;
  exchange::LocalCluster cluster(2, 1, clock, std::chrono::seconds(20));
  struct Client final : WrappedClient {
    using WrappedClient::WrappedClient;
    void begin(uint64_t step, uint32_t, float loss, exchange::Gradient gradient) override {
      EXPECT_EQ(step, told.empty() ? 7u : 9u);
      EXPECT_EQ(loss, 0.5F);
      EXPECT_EQ(gradient, exchange::Gradient::kGrowing);
      told.emplace_back();
    }
    void written(std::span<const uint64_t> elements) override {
      told.emplace_back(elements.begin(), elements.end());
    }
    std::vector<std::vector<uint64_t>> told;
  } client(cluster);
  client.declare(model);
  ParameterBinding binding(model.layout, client);
  GradientStream stream(model.layout, client, binding);
  using Written = std::vector<std::vector<uint64_t>>;

  stream.expect({.next_step = 7});
  EXPECT_FALSE(stream.hasBegun());
  // ps/0 has "third", then half of "first"; ps/1 has "second", then the other half.
  stream.onGradients(std::vector<uint32_t>{2});
  EXPECT_EQ(client.told, Written{}) << "nothing has started";
  stream.onLoss(0.5F);
  EXPECT_TRUE(stream.hasBegun());
  EXPECT_EQ(client.told, (Written{{}, {48, 0}})) << "what was made ahead of the loss";
  std::iota(binding.gradient(0), binding.gradient(0) + 100, 0.0F);
  stream.onGradients(std::vector<uint32_t>{0});
  EXPECT_EQ(client.told.back(), (std::vector<uint64_t>{112 - 16, 0})) << "ps/1 lacks the beginning";
  EXPECT_EQ(client.gradients(0)[48 + 49], 49);
  EXPECT_EQ(client.gradients(1)[32], 50) << "it was split";
  stream.onGradients(std::vector<uint32_t>{1});
  EXPECT_EQ(client.told.back(), (std::vector<uint64_t>{96, 96 - 16}));
  stream.complete();
  EXPECT_EQ(client.told.back(), (std::vector<uint64_t>{112, 96}));

  stream.expect({.next_step = 7});
  stream.onLoss(std::nanf(""));
  EXPECT_FALSE(stream.hasBegun());
  stream.complete();
  EXPECT_EQ(client.told.size(), 5u);
  // Split, and before the loss, like the statistics of a batch norm.
  std::fill_n(binding.gradient(0), 100, 3.0F);
  stream.expect({.next_step = 8});
  stream.onGradients(std::vector<uint32_t>{0});
  EXPECT_EQ(client.gradients(1)[32], 3);
  std::fill_n(binding.gradient(0), 100, 4.0F);
  stream.expect({.next_step = 9});
  stream.onLoss(0.5F);
  stream.complete();
  EXPECT_EQ(client.gradients(1)[32], 4) << "nobody has told of it";
}

}  // namespace
}  // namespace dtf::train
