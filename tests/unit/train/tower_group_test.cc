// Several towers equal one with the whole batch, within rounding, and repeat to the bit.

#include "common/train/tower_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/random.h"
#include "common/train/initial_values.h"
#include "common/train/worker_devices.h"
#include "tests/unit/data/part_of.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

constexpr double kRounding = 1e-6;

const std::shared_ptr<const data::Dataset>& fewDigits() {
  static const auto dataset = digits(data::DigitStream::kTrain, 200);
  return dataset;
}

// Three updates of plain gradient descent.
cluster::TrainSpec jobWith(std::vector<model::LayerSpec> layers) {
  cluster::TrainSpec train = softmaxJob(3);
  train.data.batch_size = 40;
  train.optimizer.learning_rate = 0.1;
  train.model.layers = std::move(layers);
  return train;
}

cluster::TrainSpec perceptronJob() {
  return jobWith({model::flatten(), model::dense("hidden", 32, model::Activation::kRelu),
                  model::dense("output", 10)});
}

cluster::TrainSpec convolutionJob(bool normalised) {
  std::vector<model::LayerSpec> layers = {
      model::layerOf("conv2d", "{filters: 6, kernel_size: 5, strides: 2}", "conv")};
  if (normalised)
    layers.push_back(model::layerOf("batch_normalization", "{momentum: 0.5}", "norm"));
  layers.push_back(model::activation("relu", model::Activation::kRelu));
  layers.push_back(model::layerOf("max_pooling2d", "{pool_size: 2}", "pool"));
  layers.push_back(model::flatten());
  layers.push_back(model::dense("output", 10));
  return jobWith(std::move(layers));
}

double largestDifference(const JobResult& a, const JobResult& b) {
  double largest = 0;
  EXPECT_EQ(a.parameters.size(), b.parameters.size());
  for (size_t shard = 0; shard < a.parameters.size(); ++shard)
    for (size_t i = 0; i < a.parameters[shard].size(); ++i)
      largest =
          std::max(largest, std::abs(double{a.parameters[shard][i]} - b.parameters[shard][i]));
  return largest;
}

void expectTowersEqualOne(const cluster::TrainSpec& train,
                          const std::shared_ptr<const data::Dataset>& dataset) {
  const JobResult one = runJob(train, {2, 1}, dataset);
  for (const uint32_t towers : {2u, 4u, 5u}) {
    const JobResult several = runJob(train, {2, 1, towers, 2}, dataset);
    EXPECT_LT(largestDifference(several, one), kRounding) << towers << " towers";
    EXPECT_NEAR(*several.workers[0].final_loss, *one.workers[0].final_loss, kRounding)
        << towers << " towers";
  }
}

TEST(TowerGroup, EqualsOneTowerWithTheWholeBatch) {
  expectTowersEqualOne(perceptronJob(), fewDigits());
}

TEST(TowerGroup, EqualsOneTowerWithConvolutions) {
  expectTowersEqualOne(convolutionJob(false), fewDigits());
}

TEST(TowerGroup, EqualsOneTowerWithPenalties) {
  cluster::TrainSpec train = perceptronJob();
  train.model.layers[1] =
      model::layerOf("dense", "{units: 32, kernel_regularizer: {l1: 0.001, l2: 0.01}}", "hidden");
  expectTowersEqualOne(train, fewDigits());
}

// The norm is of the mean gradient: clipping tower by tower would give another one.
TEST(TowerGroup, EqualsOneTowerThatClipsTheGlobalNorm) {
  cluster::TrainSpec train = perceptronJob();
  train.optimizer.clip_by_global_norm = 0.05;
  train.optimizer.learning_rate = 1;
  expectTowersEqualOne(train, fewDigits());
}

// Words that several towers look up, and some that one tower looks up twice.
std::shared_ptr<const data::Dataset> sentences() {
  constexpr int kSentences = 200, kLength = 6;
  Random random(1, 0);
  std::vector<uint8_t> words(static_cast<size_t>(kSentences) * kLength), classes(kSentences);
  for (uint8_t& word : words) word = static_cast<uint8_t>(random.below(20));
  for (uint8_t& each : classes) each = static_cast<uint8_t>(random.below(2));
  return std::make_shared<const data::Dataset>(
      data::partOf(data::kFeatures, Shape{int64_t{kLength}}, words),
      data::partOf(data::kLabels, Shape{}, classes));
}

cluster::TrainSpec tableJob(int vocabulary) {
  cluster::TrainSpec train = jobWith(
      {model::layerOf("embedding", "{input_dim: " + std::to_string(vocabulary) + ", output_dim: 4}",
                      "words"),
       model::flatten(), model::dense("out", 2)});
  train.model.input_shape = {6};
  return train;
}

TEST(TowerGroup, JoinsTheRowsThatItsTowersLookedUp) {
  cluster::TrainSpec train = tableJob(20);
  expectTowersEqualOne(train, sentences());
  train.placement.partition_min_bytes = 64;  // splits it over both ps
  train.optimizer.clip_by_global_norm = 0.05;
  expectTowersEqualOne(train, sentences());
}

// The gradients that a worker with so many towers pushes.
struct Computed {
  float loss = 0;
  std::vector<std::vector<float>> gradients;
};

Computed compute(const cluster::TrainSpec& train, const data::Batch& batch, uint32_t towers) {
  BoundParameters parameters(train);
  const std::vector<std::string> names = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"};
  WorkerDevices devices({names.begin(), names.begin() + towers}, 2, runtime::tableRule());
  const model::ModelGraph share = trainingGraphOf(shareOf(train, towers));
  const engine::TaskPart part =
      trainingPart(share, placeModel(share.graph, {}, 1, 0), 0, devices.towers().each.at(0));
  TowerGroup group(share, part, devices.towers());
  Computed computed;
  computed.loss = group.compute({batch, 1, 5}, parameters.binding());
  for (uint32_t i = 0; i < parameters.binding().variables(); ++i) {
    const std::span<const float> gradient = parameters.binding().gradientValues(i);
    computed.gradients.emplace_back(gradient.begin(), gradient.end());
  }
  return computed;
}

// Both halves of the batch are equal: each tower normalises as one tower would with the whole.
TEST(TowerGroup, EqualSharesAreNormalisedAsTheWholeBatch) {
  cluster::TrainSpec train = convolutionJob(true);
  const auto share = static_cast<size_t>(train.data.batch_size / 2);
  data::BatchReader reader(fewDigits(), static_cast<int64_t>(share), 1);
  data::Batch half(fewDigits()->parts(), static_cast<int64_t>(share));
  reader.read(0, half);
  data::Batch batch(fewDigits()->parts(), train.data.batch_size);
  for (size_t part = 0; part < batch.parts.size(); ++part)
    for (size_t copy : {0, 1})
      std::copy_n(half.parts[part].data(), half.parts[part].bytes(),
                  batch.parts[part].data() + copy * half.parts[part].bytes());
  const Computed one = compute(train, batch, 1), two = compute(train, batch, 2);
  EXPECT_NEAR(one.loss, two.loss, kRounding);
  const model::ModelGraph model = trainingGraphOf(train);
  for (size_t i = 0; i < one.gradients.size(); ++i) {
    const std::string& name = model.graph.node(model.variables[i].value.node).name;
    // A variance is divided by n - 1, and a share has half as many numbers.
    const double pixels = static_cast<double>(share) * 12 * 12;
    const double unbiased = name.ends_with("moving_variance")
                                ? (pixels / (pixels - 1)) / (2 * pixels / (2 * pixels - 1))
                                : 1;
    ASSERT_EQ(one.gradients[i].size(), two.gradients[i].size());
    for (size_t j = 0; j < one.gradients[i].size(); ++j)
      ASSERT_NEAR(one.gradients[i][j] * unbiased, two.gradients[i][j], kRounding)
          << name << ", element " << j;
  }
}

// The mean over the shares is the mean over the batch, however it is divided. So the moving means
// before the first normalisation don't depend on the number of towers.
TEST(TowerGroup, TheMovingMeanIsThatOfTheWholeBatch) {
  cluster::TrainSpec train =
      jobWith({model::flatten(), model::layerOf("batch_normalization", "{momentum: 0.5}", "norm"),
               model::dense("out", 10)});
  const JobResult one = runJob(train, {1, 1}, fewDigits());
  const JobResult four = runJob(train, {1, 1, 4, 2}, fewDigits());
  constexpr size_t kPixels = 784, kVarianceAt = 16 + 7840, kMeanAt = kVarianceAt + kPixels;
  double moved = 0, largest = 0, of_variance = 0;
  for (size_t i = 0; i < kPixels; ++i) {
    const float mean = one.parameters[0][kMeanAt + i];
    moved = std::max(moved, double{std::abs(mean)});
    largest = std::max(largest, std::abs(double{mean} - four.parameters[0][kMeanAt + i]));
    of_variance = std::max(of_variance, std::abs(double{one.parameters[0][kVarianceAt + i]} -
                                                 four.parameters[0][kVarianceAt + i]));
  }
  EXPECT_GT(moved, 0.1);
  EXPECT_LT(largest, kRounding);
  EXPECT_GT(of_variance, kRounding) << "a share varies otherwise than the batch";
}

TEST(TowerGroup, RepeatsToTheBitWithAnyNumberOfThreads) {
  for (const bool normalised : {false, true}) {
    cluster::TrainSpec train = convolutionJob(normalised);
    train.replication.mode = cluster::ReplicationSpec::Mode::kSync;
    train.model.layers.insert(train.model.layers.end() - 1, model::dropout("dropout", 0.5));
    const JobResult first = runJob(train, {2, 2, 4, 1}, fewDigits());
    for (const int threads : {1, 2, 3, 8})
      EXPECT_EQ(first.parameters, runJob(train, {2, 2, 4, threads}, fewDigits()).parameters)
          << threads << " threads";
  }
}

// All examples are equal: if the second tower had the masks of the first, it would change nothing.
TEST(TowerGroup, ItsTowersDrawOtherMasks) {
  const std::vector<uint8_t> images(784 * 2, 200), labels(2, 3);
  const auto dataset =
      std::make_shared<const data::Dataset>(data::partOf(data::kFeatures, Shape{28, 28, 1}, images),
                                            data::partOf(data::kLabels, Shape{}, labels));
  cluster::TrainSpec train =
      jobWith({model::flatten(), model::dropout("dropout", 0.5), model::dense("out", 10)});
  train.steps = 1;
  train.data.batch_size = 1;
  const JobResult first_alone = runJob(train, {1, 1}, dataset);
  train.data.batch_size = 2;
  const JobResult both = runJob(train, {1, 1, 2, 2}, dataset);
  EXPECT_GT(largestDifference(both, first_alone), 1e-4);
  EXPECT_EQ(both.parameters, runJob(train, {1, 1, 2, 1}, dataset).parameters);
}

TEST(TowerGroup, ATowerThatFailsIsNamedWithItsDevice) {
  const auto dataset = sentences();
  data::Batch batch(dataset->parts(), tableJob(10).data.batch_size);
  data::BatchReader(dataset, tableJob(10).data.batch_size, 1, {}).read(0, batch);
  try {
    compute(tableJob(10), batch, 4);
    FAIL() << "computed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_TRUE(error.message().starts_with("tower 0 on cpu:0: ")) << error.message();
    EXPECT_NE(error.message().find("it must be in [0, 10)"), std::string::npos) << error.message();
  }
}

TEST(TowerGroup, ABatchThatCannotBeSharedOutIsRefused) {
  try {
    runJob(perceptronJob(), {1, 1, 3}, fewDigits());
    FAIL() << "trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("40 examples"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace dtf::train
