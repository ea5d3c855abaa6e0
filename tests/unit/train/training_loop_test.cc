#include "common/train/training_loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "common/base/error.h"
#include "common/replication/epoch.h"
#include "tests/unit/train/job.h"
#include "tests/unit/train/wrapped_client.h"

namespace dtf::train {
namespace {

// One of the ps is lost as soon as it holds them, and its next process holds none.
TEST(TrainingLoop, TheChiefBringsTheInitialValuesUntilAllPsHoldThem) {
  const SystemClock clock;
  exchange::LocalCluster cluster(2, 1, clock, std::chrono::seconds(10));
  exchange::LocalExchangeClient client(cluster, 0);
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device;
  const cluster::TrainSpec train = softmaxJob(1);
  TrainingLoop loop(train, {0, 1, 2}, trainDigits(), client, kernels, device, clock);
  constexpr uint64_t kNext = replication::nextEpoch(replication::kFirstEpoch, 3);
  std::vector<std::optional<uint64_t>> decisions{replication::kFirstEpoch, kNext, std::nullopt};
  size_t asked = 0;
  loop.join([&] { return decisions.at(asked++); });
  EXPECT_EQ(asked, 3u);
  EXPECT_EQ(client.pull().epoch, kNext);
}

TEST(TrainingLoop, LearnsTheDigits) {
  const JobResult job = runJob(softmaxJob(400), {2, 1}, trainDigits(), evalDigits());
  EXPECT_EQ(job.workers[0].global_step, 400u);
  EXPECT_EQ(job.workers[0].batches, 400u);
  EXPECT_LT(job.workers[0].final_loss.value(), 1.0);  // ln 10 = 2.3 at the start
  EXPECT_GT(*job.evaluation->accuracy, 0.80);
  EXPECT_LT(job.evaluation->loss, 0.75);
  EXPECT_EQ(job.evaluation->examples, 1003);
}

TEST(TrainingLoop, LearnsWithAHiddenLayerAndEveryLoss) {
  cluster::TrainSpec train = softmaxJob(300);
  train.optimizer.kind = cluster::OptimizerSpec::Kind::kAdam;
  train.optimizer.learning_rate = 0.003;
  train.model.layers = {model::flatten(), model::dense("hidden", 48, model::Activation::kRelu),
                        model::dense("output", 10)};
  for (const model::Loss loss :
       {model::Loss::kSoftmaxCrossEntropy, model::Loss::kMse, model::Loss::kSigmoidCrossEntropy}) {
    train.model.loss.kind = loss;
    const JobResult job = runJob(train, {2, 1}, trainDigits(), evalDigits());
    EXPECT_GT(*job.evaluation->accuracy, 0.75) << "loss " << static_cast<int>(loss);
  }
}

cluster::TrainSpec dropoutJob(uint64_t steps, uint32_t replicas_to_aggregate = 0) {
  cluster::TrainSpec train = syncJob(steps, replicas_to_aggregate);
  train.optimizer.kind = cluster::OptimizerSpec::Kind::kAdam;
  train.optimizer.learning_rate = 0.003;
  train.model.layers = {model::flatten(), model::dropout("dropout", 0.2),
                        model::dense("hidden", 100, model::Activation::kRelu),
                        model::dropout("dropout_1", 0.5), model::dense("output", 10)};
  return train;
}

TEST(TrainingLoop, LearnsWithDropout) {
  const JobResult job = runJob(dropoutJob(300), {2, 1}, trainDigits(), evalDigits());
  EXPECT_GT(*job.evaluation->accuracy, 0.85);
  EXPECT_LT(job.evaluation->loss, job.workers[0].final_loss.value()) << "evaluation leaves it out";
}

// The masks belong to the batches, not to the workers: two workers equal one that takes both
// batches.
TEST(TrainingLoop, DropoutRepeatsToTheBitHoweverManyWorkers) {
  const JobResult first = runJob(dropoutJob(30), {2, 2}, trainDigits());
  const JobResult second = runJob(dropoutJob(30), {2, 2}, trainDigits());
  EXPECT_EQ(first.parameters, second.parameters);
  EXPECT_EQ(first.parameters, runJob(dropoutJob(30, 2), {2, 1}, trainDigits()).parameters);
  cluster::TrainSpec without = dropoutJob(30);
  for (model::LayerSpec& layer : without.model.layers)
    if (layer.type == "dropout") layer = model::dropout(layer.name, 0);
  EXPECT_NE(first.parameters, runJob(without, {2, 2}, trainDigits()).parameters);
}

cluster::TrainSpec augmentedJob(uint64_t steps, uint32_t replicas_to_aggregate = 0) {
  cluster::TrainSpec train = syncJob(steps, replicas_to_aggregate);
  train.data.augment = {.flip_horizontal = false, .crop_padding = 2};
  return train;
}

// The augmentation of an image depends on the image and the epoch, not on the worker.
TEST(TrainingLoop, AugmentedImagesRepeatToTheBitHoweverManyWorkers) {
  const JobResult two = runJob(augmentedJob(60), {2, 2}, trainDigits());  // more than an epoch
  EXPECT_EQ(two.parameters, runJob(augmentedJob(60), {2, 2}, trainDigits()).parameters);
  EXPECT_EQ(two.parameters, runJob(augmentedJob(60, 2), {2, 1}, trainDigits()).parameters);
  EXPECT_NE(two.parameters, runJob(syncJob(60), {2, 2}, trainDigits()).parameters);
}

TEST(TrainingLoop, LearnsFromAugmentedImages) {
  cluster::TrainSpec train = augmentedJob(800);
  train.data.augment.crop_padding = 1;
  const JobResult job = runJob(train, {2, 2}, trainDigits(), evalDigits());
  EXPECT_GT(*job.evaluation->accuracy, 0.75);
}

// Two sync replicas equal one process that takes both batches, to the bit.
TEST(TrainingLoop, TwoSyncWorkersEqualOneThatTakesBothBatches) {
  const JobResult two = runJob(syncJob(60), {2, 2}, trainDigits());
  const JobResult one = runJob(syncJob(60, 2), {2, 1}, trainDigits());
  EXPECT_EQ(two.parameters, one.parameters);
  EXPECT_EQ(one.workers[0].batches, 120u);
  // All workers get the mean loss over the step's contributions.
  EXPECT_EQ(two.workers[0].final_loss, two.workers[1].final_loss);
  EXPECT_EQ(two.workers[0].final_loss, one.workers[0].final_loss);
}

TEST(TrainingLoop, ASyncRunRepeatsToTheBit) {
  const JobResult first = runJob(syncJob(40), {2, 3}, trainDigits());
  const JobResult second = runJob(syncJob(40), {2, 3}, trainDigits());
  EXPECT_EQ(first.parameters, second.parameters);
}

// The place of a variable doesn't change its value.
TEST(TrainingLoop, SplitVariablesTrainToTheSameBits) {
  cluster::TrainSpec split = syncJob(30);
  split.placement.partition_min_bytes = 1024;
  const JobResult whole = runJob(syncJob(30), {1, 2}, trainDigits());
  const JobResult halves = runJob(split, {2, 2}, trainDigits());
  // The weights are the end of each arena. Each of two ps has half of them.
  const std::span<const float> all = std::span(whole.parameters[0]).last(7840);
  for (size_t ps = 0; ps < 2; ++ps)
    EXPECT_TRUE(std::ranges::equal(std::span(halves.parameters[ps]).last(7840 / 2),
                                   all.subspan(ps * 7840 / 2, 7840 / 2)))
        << "ps/" << ps;
}

// lars needs norms of whole variables: the partition threshold doesn't apply to it.
TEST(TrainingLoop, LarsKeepsVariablesWholeAndLearns) {
  cluster::TrainSpec train = softmaxJob(300);
  train.placement.partition_min_bytes = 1024;
  train.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kLars);
  train.optimizer.learning_rate = 0.5;
  train.optimizer.eeta = 0.1;
  train.optimizer.schedule = {
      .kind = cluster::LearningRateSchedule::Kind::kCosine, .warmup_steps = 20, .decay_steps = 280};
  const JobResult job = runJob(train, {2, 1}, trainDigits(), evalDigits());
  EXPECT_EQ(job.parameters[0].size(), 7840u);
  EXPECT_EQ(job.parameters[1].size(), 16u);
  EXPECT_GT(*job.evaluation->accuracy, 0.75);
}

// With a learning rate of 1 one update moves the parameters by the gradient: at most by its norm.
TEST(TrainingLoop, ClipsTheGlobalNormBeforeItPushes) {
  cluster::TrainSpec train = softmaxJob(1);
  train.optimizer.learning_rate = 1;
  const auto moved = [&](double clip_norm) {
    train.optimizer.clip_by_global_norm = clip_norm;
    cluster::TrainSpec still = train;
    still.optimizer.learning_rate = 1e-30;
    const JobResult before = runJob(still, {2, 1}, trainDigits());
    const JobResult after = runJob(train, {2, 1}, trainDigits());
    double sum = 0;
    for (size_t shard = 0; shard < after.parameters.size(); ++shard)
      for (size_t i = 0; i < after.parameters[shard].size(); ++i)
        sum += std::pow(double{after.parameters[shard][i]} - before.parameters[shard][i], 2);
    return std::sqrt(sum);
  };
  const double whole = moved(0);
  EXPECT_GT(whole, 0.1);
  EXPECT_NEAR(moved(0.01), 0.01, 1e-4);
  EXPECT_NEAR(moved(whole * 2), whole, 1e-6);
}

TEST(TrainingLoop, AsyncWorkersReachTheSameRegion) {
  const JobResult job = runJob(softmaxJob(500), {2, 3}, trainDigits(), evalDigits());
  EXPECT_GE(job.workers[0].global_step, 500u);
  uint64_t batches = 0;
  for (const TrainingResult& worker : job.workers) batches += worker.batches;
  EXPECT_GE(batches, 500u);
  // Mostly above 0.80, but the last update may come from very old parameters.
  EXPECT_GT(*job.evaluation->accuracy, 0.60);
}

TEST(TrainingLoop, BackupWorkersDropLateGradientsAndStillLearn) {
  const JobResult job = runJob(syncJob(200, 2), {2, 3}, trainDigits(), evalDigits());
  for (const TrainingResult& worker : job.workers) EXPECT_EQ(worker.global_step, 200u);
  EXPECT_GT(*job.evaluation->accuracy, 0.78);
}

TEST(TrainingLoop, NamesWorkerAndStepWhenTheLossIsNoNumber) {
  cluster::TrainSpec train = softmaxJob(100);
  train.optimizer.learning_rate = 1e38;
  try {
    runJob(train, {2, 1}, trainDigits());
    FAIL() << "trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTrainingFailed);
    EXPECT_NE(error.message().find("on worker/0 at step "), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("try a learning_rate smaller than 1e+38"), std::string::npos)
        << error.message();
  }
}

// The loss stays a number for some steps; a job that ended there would count as done.
TEST(TrainingLoop, ALossAMillionTimesItsStartIsNoSuccessThoughItIsANumber) {
  cluster::TrainSpec train = softmaxJob(4);
  train.model.loss.kind = model::Loss::kMse;
  train.optimizer.learning_rate = 20;
  try {
    runJob(train, {1, 1}, trainDigits());
    FAIL() << "trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTrainingFailed);
    EXPECT_NE(error.message().find("it began with 0."), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("try a learning_rate smaller than 20"), std::string::npos)
        << error.message();
  }
}

// A client that changes the reply of the ps to the first pull.
class ChangedClient final : public WrappedClient {
 public:
  using Change = std::function<void(replication::StepState&)>;
  ChangedClient(exchange::LocalCluster& cluster, Change change)
      : WrappedClient(cluster), change_(std::move(change)) {}
  replication::StepState pull(exchange::Values what = exchange::Values::kParameters) override {
    replication::StepState state = WrappedClient::pull(what);
    change_(state);
    return state;
  }

 private:
  const Change change_;
};

TEST(TrainingLoop, WithoutABatchThereIsNoLossAndNoFirstStep) {
  const runtime::KernelTable kernels = cpuKernels();
  const SystemClock clock;
  runtime::CpuDevice device;
  exchange::LocalCluster cluster(1, 1, clock, std::chrono::seconds(20));
  // The state of a job that was restored at its last step.
  ChangedClient client(cluster, [](replication::StepState& state) { state.done = true; });
  TrainingLoop loop(softmaxJob(5), {0, 1, 1}, trainDigits(), client, kernels, device, clock);
  loop.join();
  const TrainingResult result = loop.run(nullptr);
  EXPECT_EQ(result.batches, 0u);
  EXPECT_EQ(result.final_loss, std::nullopt);
  EXPECT_EQ(result.first_step, std::nullopt);
  const JobResult one = runJob(softmaxJob(1), {2, 1}, trainDigits());
  EXPECT_TRUE(one.workers[0].final_loss && one.workers[0].first_step);
}

// Two of three batches make a step: two steps count two thirds of the 15 examples.
TEST(TrainingLoop, ExamplesOfBackupWorkersThatAreDroppedAreNotOfTheStep) {
  cluster::TrainSpec train = syncJob(0, 2);
  train.replication.total_num_replicas = 3;
  train.data.batch_size = 4;
  train.epochs = 1;
  train.steps = 2;
  const JobResult job = runJob(train, {1, 3}, digits(data::DigitStream::kTrain, 15));
  EXPECT_EQ(job.workers[0].examples_per_step, 5);
}

TEST(TrainingLoop, AJobIsOverWhenThePsSayItOrHoldAllOfTheSameEpoch) {
  const TrainingResult result{.global_step = 7, .epoch = 2};
  EXPECT_TRUE(result.isOver({.global_step = 3, .done = true, .epoch = 5}));
  EXPECT_TRUE(result.isOver({.global_step = 7, .epoch = 2}));
  EXPECT_FALSE(result.isOver({.global_step = 6, .epoch = 2}));
  EXPECT_FALSE(result.isOver({.global_step = 7, .epoch = 3})) << "of another line of history";
}

TEST(TrainingLoop, ABatchThatItDoesNotHaveIsRefused) {
  const runtime::KernelTable kernels = cpuKernels();
  const SystemClock clock;
  runtime::CpuDevice device;
  exchange::LocalCluster cluster(1, 1, clock, std::chrono::seconds(20));
  ChangedClient client(cluster, [](replication::StepState& state) { state.next_batch = 1; });
  TrainingLoop loop(softmaxJob(5), {0, 1, 1}, trainDigits(), client, kernels, device, clock);
  loop.join();
  try {
    loop.run(nullptr);
    FAIL() << "it computed one";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_EQ(error.message(),
              "the ps want batch 1, counted from 0, of a step in which worker/0 has 1");
  }
}

// Each call of now() is a second later.
class HastyClock final : public Clock {
 public:
  TimePoint now() const override {
    clock_.advance(std::chrono::seconds(1));
    return clock_.now();
  }

 private:
  mutable ManualClock clock_;
};

TEST(TrainingLoop, LongInitialisingSaysHowFarItIs) {
  const runtime::KernelTable kernels = cpuKernels();
  const SystemClock clock;
  const HastyClock hasty;
  runtime::CpuDevice device;
  exchange::LocalCluster cluster(1, 1, clock, std::chrono::seconds(20));
  exchange::LocalExchangeClient client(cluster, 0);
  cluster::TrainSpec train = softmaxJob(5);
  train.model.layers.insert(train.model.layers.begin() + 1, model::dense("relu", 6000));
  TrainingLoop loop(train, {0, 1, 1}, trainDigits(), client, kernels, device, hasty);
  std::vector<std::string> said;
  loop.join(nullptr, [&](const std::string& what, Duration waited) {
    EXPECT_GE(waited, std::chrono::seconds(3));
    said.push_back(what);
  });
  ASSERT_FALSE(said.empty());
  EXPECT_TRUE(said[0].starts_with("initialising ")) << said[0];
  EXPECT_TRUE(said[0].ends_with(" %")) << said[0];
}

TEST(TrainingLoop, RefusesDataThatDoesNotFitTheModel) {
  cluster::TrainSpec train = softmaxJob(10);
  train.model.layers[1] = model::dense("softmax", 7);
  EXPECT_THROW(runJob(train, {1, 1}, trainDigits()), Error);
  train = softmaxJob(10);
  train.data.batch_size = 2001;
  EXPECT_THROW(runJob(train, {1, 1}, trainDigits()), Error);
}

}  // namespace
}  // namespace dtf::train
