// Gradients of short batches, in whole jobs of this process.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "common/base/random.h"
#include "common/train/training_loop.h"
#include "common/train/worker_devices.h"
#include "tests/gpu/plugin_under_test.h"
#include "tests/unit/train/epoch_jobs.h"
#include "tests/unit/train/streaming_client.h"

namespace dtf::train {
namespace {

using Mode = cluster::ReplicationSpec::Mode;

void expectEachCounts(const JobResult& job, const cluster::TrainSpec& train, size_t examples,
                      uint32_t workers) {
  const cluster::BatchPlan plan = planOf(train, static_cast<int64_t>(examples), workers);
  const auto largest = static_cast<double>(plan.examplesOfLargestGroup());
  for (const double uses : usesOf(job, examples, largest))
    EXPECT_NEAR(uses, static_cast<double>(train.epochs), 0.02 * static_cast<double>(train.epochs));
}

TEST(TrainingGradients, EachExampleOfAnEpochChangesAsMuch) {
  Random random(37);
  for (int round = 0; round < 40; ++round) {
    const size_t examples = 1 + random.below(16);
    const auto batch = static_cast<int64_t>(1 + random.below(6));
    const auto workers = static_cast<uint32_t>(1 + random.below(3));
    cluster::TrainSpec train = countingJob(examples, batch, 1 + random.below(3));
    TasksOfJob tasks{1, workers, static_cast<uint32_t>(1 + random.below(3))};
    const uint64_t mode = random.below(6);
    if (mode > 2) train.replication.mode = Mode::kSync;
    if (mode == 3) train.replication.replicas_to_aggregate = workers + 1;  // several batches of one
    if (mode == 2) train.replication.mode = Mode::kBounded;
    if (mode == 2) train.replication.staleness = static_cast<uint32_t>(random.below(2));
    train.replication.overlap = mode > 0 && mode < 3 && random.below(2) == 0;
    if (batch % tasks.towers != 0) tasks.towers = 1;
    train.steps = stepsOf(train, static_cast<int64_t>(examples), workers);
    SCOPED_TRACE(std::to_string(examples) + " examples, batch " + std::to_string(batch) + ", " +
                 std::to_string(workers) + " workers of " + std::to_string(tasks.towers) +
                 " towers, mode " + std::to_string(mode));
    const JobResult job = runJob(train, tasks, countedExamples(examples));
    EXPECT_EQ(job.workers[0].global_step, train.steps);
    expectEachCounts(job, train, examples, workers);
  }
}

// Where one worker computes, and where its variables and gradients lie.
struct Place {
  bool on_gpu = false;
  uint32_t towers = 1;
  bool one_process = false;  // the variables stay on GPUs
  bool streams = false;      // a gradient leaves while it is computed
  std::string text() const {
    return std::to_string(towers) + (on_gpu ? " GPUs" : " CPUs") +
           (one_process ? ", no ps"
            : streams   ? ", streamed"
                        : "");
  }
};

// `streamed` counts gradients.
JobResult trainAt(const Place& place, const cluster::TrainSpec& train,
                  const std::shared_ptr<const data::Dataset>& dataset, int& streamed) {
  ::setenv("DTF_TEST_HOST_DEVICES", std::to_string(place.towers).c_str(), 1);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < place.towers; ++i)
    names.push_back((place.on_gpu ? "gpu:" : "cpu:") + std::to_string(i));
  const SystemClock clock;
  WorkerDevices devices(names, 1, runtime::tableRule());
  exchange::LocalCluster cluster(1, 1, clock, std::chrono::seconds(20));
  StreamingClient streaming(cluster);
  exchange::LocalExchangeClient whole(cluster, 0);
  exchange::ExchangeClient& client =
      place.streams ? static_cast<exchange::ExchangeClient&>(streaming) : whole;
  TrainingLoop loop(train, {.one_process = place.one_process}, dataset, client, devices.kernels(),
                    devices.device(), clock, devices.towers());
  loop.join();
  JobResult job;
  job.workers.push_back(loop.run(nullptr));
  client.pull();
  const uint64_t elements = loop.declaration().layout.shards[0].elements;
  job.parameters.emplace_back(client.view(exchange::Values::kParameters, 0),
                              client.view(exchange::Values::kParameters, 0) + elements);
  client.job().leave();
  streamed += streaming.started;
  return job;
}

// The devices are those of a plug-in, as GPUs are.
TEST(TrainingGradients, EachExampleChangesAsMuchWhereverVariablesAndGradientsLie) {
  ::setenv("DTF_GPU_PLUGIN", runtime::testing::testPluginPath("host").c_str(), 1);
  Random random(41);
  int streamed = 0;
  for (int round = 0; round < 60; ++round) {
    const size_t examples = 1 + random.below(16);
    Place place{.on_gpu = random.below(3) > 0,
                .towers = static_cast<uint32_t>(1 + random.below(3)),
                .one_process = random.below(2) == 0};
    place.streams = !place.one_process && random.below(2) == 0;
    const auto batch = static_cast<int64_t>(place.towers * (1 + random.below(4)));
    cluster::TrainSpec train = countingJob(examples, batch, 1 + random.below(3));
    if (random.below(2) == 0) train.replication.mode = Mode::kSync;
    if (random.below(4) == 0) train.optimizer.clip_by_global_norm = 1e6;
    train.steps = stepsOf(train, static_cast<int64_t>(examples), 1);
    SCOPED_TRACE(std::to_string(examples) + " examples, batch " + std::to_string(batch) + ", " +
                 place.text());
    expectEachCounts(trainAt(place, train, countedExamples(examples), streamed), train, examples,
                     1);
  }
  EXPECT_GT(streamed, 0);
  ::unsetenv("DTF_GPU_PLUGIN");
  ::unsetenv("DTF_TEST_HOST_DEVICES");
}

double largestDifferenceOf(const JobResult& a, const JobResult& b) {
  double largest = 0;
  for (size_t i = 0; i < a.parameters.at(0).size(); ++i)
    largest = std::max(largest, std::abs(double{a.parameters[0][i]} - b.parameters.at(0).at(i)));
  return largest;
}

// The last step of an epoch has 1, 5 or 8 examples of 12: one share of three; shares of 2, 2 and 1;
// shares of 3, 3 and 2.
TEST(TrainingGradients, SyncWorkersAreOneWithTheWholeShortBatch) {
  for (const int64_t examples : {37, 41, 44}) {
    const auto dataset = digits(data::DigitStream::kTrain, examples);
    cluster::TrainSpec train = syncJob(0);
    train.epochs = 3;
    train.data.batch_size = 12;
    train.steps = stepsOf(train, examples, 1);
    const JobResult one = runJob(train, {1, 1}, dataset);
    const JobResult towers = runJob(train, {1, 1, 3}, dataset);
    train.data.batch_size = 4;
    ASSERT_EQ(stepsOf(train, examples, 3), train.steps);
    const JobResult three = runJob(train, {1, 3}, dataset);
    EXPECT_LT(largestDifferenceOf(three, one), 1e-6) << examples;
    EXPECT_LT(largestDifferenceOf(towers, one), 1e-6) << examples;
    EXPECT_NEAR(*three.workers[2].final_loss, *one.workers[0].final_loss, 1e-6) << examples;
    EXPECT_NEAR(*towers.workers[0].final_loss, *one.workers[0].final_loss, 1e-6) << examples;
    EXPECT_EQ(runJob(train, {1, 3}, dataset).parameters, three.parameters);
    // One epoch has ended with its short batch: the report counts its examples.
    EXPECT_EQ(one.progress.back().examples, static_cast<uint64_t>(3 * examples));
  }
}

TEST(TrainingGradients, AShortBatchIsClippedBeforeItIsWeighed) {
  const auto dataset = countedExamples(3);
  cluster::TrainSpec train = countingJob(3, 2, 1);
  train.optimizer.learning_rate = 1;
  train.optimizer.clip_by_global_norm = 0.01;
  train.steps = stepsOf(train, 3, 1);
  ASSERT_EQ(train.steps, 2u);
  const JobResult job = runJob(train, {1, 1}, dataset);
  const std::vector<double> uses = usesOf(job, 3, 2 * kCountingRate);  // the weights themselves
  const auto [least, most] = std::ranges::minmax_element(uses);
  // The norm includes the bias, which all examples of a batch move.
  EXPECT_NEAR(*most, 0.01 / std::sqrt(6), 1e-4) << "of two: 1, 1 and 2 for the bias";
  EXPECT_NEAR(*least, 0.01 / std::sqrt(2) / 2, 1e-4) << "of one: half as much";
}

// A table has a row for each example. Its gradients are sums of that example alone, from 0 on, with
// a target of 1.
cluster::TrainSpec tableJob(int64_t examples) {
  cluster::TrainSpec train = countingJob(1, 4, 2);
  train.replication.mode = Mode::kSync;
  train.model.input_dtype = DType::kUInt8;
  train.model.layers = {model::layerOf("embedding",
                                       "{input_dim: " + std::to_string(examples) +
                                           ", output_dim: 1, embeddings_initializer: zeros}",
                                       "table"),
                        model::flatten()};
  return train;
}

// Steps have eight examples. The last step of an epoch has three, in shares of two and one; or one,
// and an empty share.
TEST(TrainingGradients, EachExampleOfAnEpochChangesItsRowAsMuch) {
  for (const size_t examples : {11, 9, 3}) {
    std::vector<uint8_t> ids(examples);
    for (size_t i = 0; i < examples; ++i) ids[i] = static_cast<uint8_t>(i);
    const auto dataset = std::make_shared<const data::Dataset>(
        data::partOf(data::kFeatures, Shape{1}, ids),
        data::partOf(data::kLabels, Shape{1}, std::vector<float>(examples, 1)));
    cluster::TrainSpec train = tableJob(static_cast<int64_t>(examples));
    train.steps = stepsOf(train, static_cast<int64_t>(examples), 2);
    const JobResult job = runJob(train, {1, 2}, dataset);
    const std::vector<float>& rows = job.parameters.at(0);
    ASSERT_GT(rows.at(0), 0) << examples;
    for (size_t i = 1; i < examples; ++i)
      EXPECT_NEAR(rows.at(i) / rows.at(0), 1, 1e-3) << i << " of " << examples;
  }
}

// A batch norm takes the statistics of the examples that are there; an empty share leaves them
// unchanged.
TEST(TrainingGradients, AShortBatchMeasuresItsExamplesAlone) {
  const std::vector<float> features(5, 3);
  const auto dataset = std::make_shared<const data::Dataset>(
      data::partOf(data::kFeatures, Shape{1}, features),
      data::partOf(data::kLabels, Shape{1}, std::vector<float>(5, 1)));
  cluster::TrainSpec train = countingJob(1, 2, 1);
  train.replication.mode = Mode::kSync;
  train.model.layers.insert(train.model.layers.begin(),
                            model::layerOf("batch_normalization", "{momentum: 0.5}", "norm"));
  train.steps = stepsOf(train, 5, 2);
  ASSERT_EQ(train.steps, 2u);
  const JobResult job = runJob(train, {1, 2}, dataset);
  EXPECT_EQ(job.workers[0].examples_per_step, 2.5);
  // From 0 to 3 by halves, twice.
  EXPECT_EQ(std::ranges::count(job.parameters.at(0), 2.25F), 1) << "the moving mean";
}

}  // namespace
}  // namespace dtf::train
