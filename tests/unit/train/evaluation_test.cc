#include "common/train/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/arena/initial_value.h"
#include "common/train/initial_values.h"
#include "tests/unit/data/part_of.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

// Computes the same means example by example, in double precision.
Evaluation slowly(const data::Dataset& dataset, std::span<const float> weights,
                  std::span<const float> biases) {
  Evaluation sums{0, 0.0, dataset.size()};
  for (int64_t i = 0; i < dataset.size(); ++i) {
    std::array<double, 10> logits{};
    for (size_t c = 0; c < 10; ++c) {
      logits[c] = biases[c];
      for (size_t p = 0; p < 784; ++p)
        logits[c] += dataset.features().of(i)[p] / 255.0 * weights[p * 10 + c];
    }
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    sums.loss += std::log(sum) - logits[dataset.labels().of(i)[0]];
    *sums.accuracy +=
        std::ranges::max_element(logits) - logits.begin() == dataset.labels().of(i)[0] ? 1 : 0;
  }
  sums.loss /= static_cast<double>(dataset.size());
  *sums.accuracy /= static_cast<double>(dataset.size());
  return sums;
}

// With a smaller last batch, against the same metrics over all outputs at once.
TEST(Evaluator, ItsMetricsAreOfAllExamples) {
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device;
  const auto dataset = digits(data::DigitStream::kEval, 503);
  model::ModelSpec spec = model::softmaxModel();
  using model::MetricKind;
  spec.metrics = {MetricKind::kTopK, MetricKind::kAuc, MetricKind::kPrecision, MetricKind::kRecall};
  const Tensor weights = arena::initialValue("glorot_uniform", Shape{784, 10}, 3, 0);
  const Tensor biases(DType::kFloat32, Shape{10});
  const std::vector<const float*> values = {weights.as<float>().data(), biases.as<float>().data()};
  Evaluator evaluator(spec, dataset, kernels, device);
  const Evaluation first = evaluator.run(values);
  ASSERT_EQ(first.metrics.size(), spec.metrics.size());
  EXPECT_EQ(first.metrics, evaluator.run(values).metrics) << "each run begins anew";

  std::vector<float> outputs;
  std::vector<int64_t> classes;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    classes.push_back(dataset->labels().of(i)[0]);
    for (size_t unit = 0; unit < 10; ++unit) {
      double logit = 0;
      for (size_t p = 0; p < 784; ++p)
        logit += dataset->features().of(i)[p] / 255.0 * weights.as<float>()[p * 10 + unit];
      outputs.push_back(static_cast<float>(logit));
    }
  }
  for (size_t i = 0; i < spec.metrics.size(); ++i) {
    const auto metric = makeMetric(spec.metrics[i], OutputScale::kSoftmaxLogits, 10);
    metric->add({10, outputs, classes, {}});
    EXPECT_NEAR(first.metrics[i].value.value(), metric->value().value(), 1e-3)
        << first.metrics[i].name;
  }
  EXPECT_TRUE(metricsText(first, ", ", ' ').starts_with(", sparse_top_5_categorical_accuracy 0."));
}

// The figures of the loss and the metrics don't depend on it, to the last bit.
TEST(Evaluator, CountsTheClassesOfAllExamplesIfAsked) {
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device;
  const auto dataset = digits(data::DigitStream::kEval, 503);
  const Tensor weights = arena::initialValue("glorot_uniform", Shape{784, 10}, 3, 0);
  const Tensor biases(DType::kFloat32, Shape{10});
  const std::vector<const float*> values = {weights.as<float>().data(), biases.as<float>().data()};
  const model::ModelSpec spec = model::softmaxModel();
  const Evaluation plain = Evaluator(spec, dataset, kernels, device).run(values);
  EXPECT_FALSE(plain.classes.has_value());
  Evaluator evaluator(spec, dataset, kernels, device, true);
  for (int run = 0; run < 2; ++run) {
    const Evaluation counted = evaluator.run(values);
    EXPECT_EQ(counted.loss, plain.loss);
    EXPECT_EQ(counted.accuracy, plain.accuracy);
    const ClassReport report = counted.classes.value().report();
    EXPECT_EQ(report.examples, 503) << "with the last, short batch, and each run anew";
    EXPECT_DOUBLE_EQ(report.accuracy, plain.accuracy.value());
    ASSERT_EQ(report.classes.size(), 10u);
    for (const ClassFigures& each : report.classes) {
      const auto labels = dataset->labels().as<uint8_t>();
      EXPECT_EQ(each.support, std::ranges::count(labels, each.index)) << each.index;
    }
  }
}

TEST(Evaluator, IsTheMeanOverAllExamplesWhateverTheirNumber) {
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device;
  const Tensor weights = arena::initialValue("glorot_uniform", Shape{784, 10}, 3, 0);
  const Tensor biases = arena::initialValue("glorot_uniform", Shape{10}, 3, 1);
  const std::vector<const float*> values = {weights.as<float>().data(), biases.as<float>().data()};
  for (const int64_t count : {1, 249, 250, 251, 700}) {
    const auto dataset = digits(data::DigitStream::kEval, count);
    Evaluator evaluator(model::softmaxModel(), dataset, kernels, device);
    const Evaluation expected = slowly(*dataset, weights.as<float>(), biases.as<float>());
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Evaluation evaluation = evaluator.run(values);
      EXPECT_EQ(evaluation.examples, count);
      EXPECT_NEAR(evaluation.loss, expected.loss, 1e-4 * expected.loss) << count;
      EXPECT_NEAR(*evaluation.accuracy, *expected.accuracy, 1e-6) << count;
    }
  }
}

TEST(Evaluator, LeavesDropoutOut) {
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device;
  const Tensor weights = arena::initialValue("glorot_uniform", Shape{784, 10}, 3, 0);
  const std::vector<float> biases(10);
  const std::vector<const float*> values = {weights.as<float>().data(), biases.data()};
  const auto dataset = digits(data::DigitStream::kEval, 300);
  const Evaluation without = Evaluator(model::softmaxModel(), dataset, kernels, device).run(values);
  for (const double rate : {0.0, 0.3, 0.9}) {
    model::ModelSpec model = model::softmaxModel();
    model.layers.insert(model.layers.begin() + 1, model::dropout("dropout", rate));
    Evaluator evaluator(model, dataset, kernels, device);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Evaluation evaluation = evaluator.run(values);
      EXPECT_EQ(evaluation.loss, without.loss) << rate;
      EXPECT_EQ(evaluation.accuracy, without.accuracy) << rate;
    }
  }
}

// The outputs are the features themselves.
std::optional<double> accuracyOfOneUnit(model::Loss loss) {
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device;
  model::ModelSpec model = model::softmaxModel();
  model.input_shape = {1};
  model.input_dtype = DType::kFloat32;
  model.labels_dtype = DType::kInt32;
  model.layers = {model::dense("out", 1)};
  model.loss.kind = loss;
  const auto dataset = std::make_shared<const data::Dataset>(
      data::partOf<float>(data::kFeatures, Shape{1}, {-2, 0.25F, 0.75F, 3, 0}),
      data::partOf<int32_t>(data::kLabels, Shape(), {0, 1, 1, 0, 0}));
  const float one = 1;
  const float zero = 0;
  return Evaluator(model, dataset, kernels, device)
      .run(std::vector<const float*>{&one, &zero})
      .accuracy;
}

TEST(Evaluator, OneUnitTellsTwoClassesByTheMiddleOfItsLoss) {
  EXPECT_EQ(accuracyOfOneUnit(model::Loss::kSigmoidCrossEntropy), 0.8) << "not as a float32";
  EXPECT_EQ(accuracyOfOneUnit(model::Loss::kHinge), 0.8);
  EXPECT_EQ(accuracyOfOneUnit(model::Loss::kMse), 0.6) << "0.25 is nearer to 0";
}

// Trained on bytes, evaluated on an array of 32-bit integers.
TEST(Evaluator, ClassesMayBeOfAnotherTypeThanThoseTrainedOn) {
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device;
  const auto bytes = digits(data::DigitStream::kEval, 20);
  data::ByteBlock copy(bytes->features().bytes().size());
  std::copy(bytes->features().bytes().begin(), bytes->features().bytes().end(), copy.data());
  std::vector<int32_t> labels(bytes->labels().bytes().begin(), bytes->labels().bytes().end());
  const auto wide = std::make_shared<const data::Dataset>(
      data::Part(bytes->features().spec(), "x.npy", std::move(copy)),
      data::partOf<int32_t>(data::kLabels, Shape(), labels));
  const Tensor weights = arena::initialValue("glorot_uniform", Shape{784, 10}, 3, 0);
  const std::vector<float> biases(10);
  const std::vector<const float*> values = {weights.as<float>().data(), biases.data()};
  const Evaluation one = Evaluator(model::softmaxModel(), bytes, kernels, device).run(values);
  const Evaluation other = Evaluator(model::softmaxModel(), wide, kernels, device).run(values);
  EXPECT_EQ(one.loss, other.loss);
  EXPECT_EQ(one.accuracy, other.accuracy);
}

TEST(Evaluator, HasNoAccuracyUnlessTheModelAsksForIt) {
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device;
  model::ModelSpec model = model::softmaxModel();
  model.accuracy = false;
  Evaluator evaluator(model, digits(data::DigitStream::kEval, 30), kernels, device);
  const std::vector<float> zeros(7840);
  const Evaluation evaluation =
      evaluator.run(std::vector<const float*>{zeros.data(), zeros.data()});
  EXPECT_FALSE(evaluation.accuracy);
  EXPECT_NEAR(evaluation.loss, std::log(10.0), 1e-5);
}

}  // namespace
}  // namespace dtf::train
