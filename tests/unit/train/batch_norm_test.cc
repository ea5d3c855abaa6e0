// Batch normalisation from the file to the ps, with its moving statistics.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/error.h"
#include "common/data/batch_order.h"
#include "tests/unit/data/part_of.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

constexpr size_t kPixels = 784;
// Layout on one ps: biases, weights, variance, mean, then the norm's trained parameters.
constexpr size_t kVarianceAt = 16 + 7840, kMeanAt = kVarianceAt + kPixels;
constexpr double kMomentum = 0.75;

const std::shared_ptr<const data::Dataset>& pixelDigits() {
  static const auto dataset = digits(data::DigitStream::kTrain, 2000);
  return dataset;
}

// Normalises the pixels themselves, so that their statistics follow from the data alone.
cluster::TrainSpec normJob(uint64_t steps, uint32_t aggregate = 0, double momentum = kMomentum) {
  cluster::TrainSpec train = softmaxJob(steps);
  train.optimizer.learning_rate = 0.1;
  train.replication.mode = cluster::ReplicationSpec::Mode::kSync;
  train.replication.replicas_to_aggregate = aggregate;
  const std::string settings = fmt::format("momentum: {}", momentum);
  train.model.layers = {model::flatten(), model::layerOf("batch_normalization", settings, "norm"),
                        model::dense("out", 10)};
  return train;
}

struct Statistics {
  std::vector<double> mean = std::vector<double>(kPixels, 0);
  std::vector<double> variance = std::vector<double>(kPixels, 1);
};

// Statistics of each pixel over one batch; the variance is unbiased, as in TensorFlow's fused
// kernel.
Statistics statisticsOf(std::span<const uint8_t> images, size_t batch) {
  Statistics result;
  for (size_t pixel = 0; pixel < kPixels; ++pixel) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < batch; ++i) sum += images[i * kPixels + pixel] / 255.0;
    const double mean = sum / static_cast<double>(batch);
    for (size_t i = 0; i < batch; ++i)
      squares += std::pow(images[i * kPixels + pixel] / 255.0 - mean, 2);
    result.mean[pixel] = mean;
    result.variance[pixel] = squares / static_cast<double>(batch - 1);
  }
  return result;
}

// Keras' moving -= (moving - batch statistic) * (1 - momentum), from 0 and 1.
Statistics expectedAfter(uint64_t steps, size_t batch) {
  data::BatchReader reader(pixelDigits(), static_cast<int64_t>(batch),
                           cluster::TrainSpec{}.data.seed);
  data::Batch examples(reader.dataset().parts(), static_cast<int64_t>(batch));
  Statistics moving;
  for (uint64_t step = 0; step < steps; ++step) {
    reader.read(step, examples);
    const Statistics now = statisticsOf(examples.parts[0].as<uint8_t>(), batch);
    for (size_t i = 0; i < kPixels; ++i) {
      moving.mean[i] -= (moving.mean[i] - now.mean[i]) * (1 - kMomentum);
      moving.variance[i] -= (moving.variance[i] - now.variance[i]) * (1 - kMomentum);
    }
  }
  return moving;
}

double largestError(std::span<const float> found, const std::vector<double>& expected) {
  double error = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    error = std::max(error, std::abs(found[i] - expected[i]));
  return error;
}

// The optimizer has every setting that could change them.
TEST(BatchNorm, StatisticsMoveByKerasFormulaWhateverTheOptimizerDoes) {
  constexpr uint64_t kSteps = 5;
  cluster::TrainSpec train = normJob(kSteps);
  train.optimizer.clip_by_global_norm = 1e-3;
  train.optimizer.clip_by_value = 1e-4;
  train.optimizer.weight_decay = 0.1;
  train.optimizer.moving_average_decay = 0.9;
  const JobResult job = runJob(train, {1, 1}, pixelDigits());
  const std::span<const float> arena = job.parameters.at(0);
  const Statistics expected = expectedAfter(kSteps, 50);
  EXPECT_GT(*std::ranges::max_element(expected.mean), 0.3) << "there is something to see";
  EXPECT_LT(largestError(arena.subspan(kMeanAt, kPixels), expected.mean), 1e-6);
  EXPECT_LT(largestError(arena.subspan(kVarianceAt, kPixels), expected.variance), 1e-6);
}

// One step with learning rate 1 moves the trained parameters by the clipped gradient.
TEST(BatchNorm, StatisticsAreNoPartOfTheGradientsNorm) {
  cluster::TrainSpec train = normJob(1);
  train.optimizer.clip_by_global_norm = 0.01;
  train.optimizer.learning_rate = 1;
  cluster::TrainSpec still = train;
  still.optimizer.learning_rate = 1e-30;
  const JobResult before = runJob(still, {1, 1}, pixelDigits());
  const JobResult after = runJob(train, {1, 1}, pixelDigits());
  double sum = 0;
  for (size_t i = 0; i < after.parameters[0].size(); ++i) {
    const double moved = double{after.parameters[0][i]} - before.parameters[0][i];
    if (i < kVarianceAt || i >= kMeanAt + kPixels)
      sum += moved * moved;
    else
      EXPECT_EQ(moved, 0) << "statistics of the same batch";
  }
  EXPECT_NEAR(std::sqrt(sum), 0.01, 1e-4);
}

TEST(BatchNorm, TwoSyncWorkersEqualOneThatTakesBothBatches) {
  const JobResult two = runJob(normJob(20), {2, 2}, pixelDigits());
  EXPECT_EQ(two.parameters, runJob(normJob(20), {2, 2}, pixelDigits()).parameters);
  EXPECT_EQ(two.parameters, runJob(normJob(20, 2), {2, 1}, pixelDigits()).parameters);
}

TEST(BatchNorm, EvaluationNormalisesByTheMovingStatistics) {
  const auto held_out = digits(data::DigitStream::kEval, 1003);
  const JobResult job = runJob(normJob(200), {2, 1}, pixelDigits(), held_out);
  EXPECT_GT(*job.evaluation->accuracy, 0.8);
  // With frozen statistics, 0 and 1, evaluation normalises by numbers that don't fit the data.
  const JobResult frozen = runJob(normJob(200, 0, 0.9999999), {2, 1}, pixelDigits(), held_out);
  EXPECT_EQ(frozen.workers[0].final_loss, job.workers[0].final_loss) << "training reads none";
  EXPECT_GT(frozen.evaluation->loss, 1.5 * job.evaluation->loss);
}

// Evaluations read the averages of trained parameters, and the statistics themselves.
TEST(BatchNorm, AveragesOfTheParametersComeWithTheStatistics) {
  const auto held_out = digits(data::DigitStream::kEval, 500);
  cluster::TrainSpec train = normJob(200);
  train.optimizer.moving_average_decay = 0.5;
  const JobResult averaged = runJob(train, {2, 1}, pixelDigits(), held_out);
  const JobResult plain = runJob(normJob(200), {2, 1}, pixelDigits(), held_out);
  EXPECT_NEAR(averaged.evaluation->loss, plain.evaluation->loss, 0.1 * plain.evaluation->loss);
}

TEST(BatchNorm, LearnsAsynchronouslyWithSeveralWorkersAndPs) {
  cluster::TrainSpec train = normJob(200);
  train.replication = {};
  train.placement.partition_min_bytes = 1024;  // splits the statistics, too
  const JobResult job = runJob(train, {3, 2}, pixelDigits(), digits(data::DigitStream::kEval, 500));
  EXPECT_GT(*job.evaluation->accuracy, 0.7);
}

// The loss of such a batch is a number: division by an infinite variance gives 0.
TEST(BatchNorm, AStatisticThatIsNoNumberNeverReachesItsMovingAverage) {
  std::vector<float> features(200, 0.5F);
  features[7] = 1e30F;
  std::vector<uint8_t> labels(100);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 2;
  const auto dataset =
      std::make_shared<const data::Dataset>(data::partOf(data::kFeatures, Shape{2}, features),
                                            data::partOf(data::kLabels, Shape{}, labels));
  cluster::TrainSpec train = normJob(10);
  train.model.input_shape = {2};
  train.model.input_dtype = DType::kFloat32;
  train.data.batch_size = 100;
  try {
    runJob(train, {1, 1}, dataset);
    FAIL() << "trained";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTrainingFailed);
    EXPECT_NE(error.message().find("'norm/moving_variance' is inf"), std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace dtf::train
