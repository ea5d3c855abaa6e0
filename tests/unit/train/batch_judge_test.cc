#include "common/train/batch_judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/model/models.h"

namespace dtf::train {
namespace {

using model::MetricKind;

template <class T>
const std::byte* bytesOf(const std::vector<T>& labels) {
  return reinterpret_cast<const std::byte*>(labels.data());
}

model::ModelSpec modelWith(model::Loss loss, std::vector<model::MetricSpec> metrics) {
  model::ModelSpec spec = model::softmaxModel();
  spec.loss.kind = loss;
  spec.metrics = std::move(metrics);
  return spec;
}

// Two of three examples of class 1 are found, and one of class 0 is taken for it.
TEST(BatchJudge, ReadsClassesOfEveryTypeInOneBatchAfterAnother) {
  BatchJudge judge(
      modelWith(model::Loss::kSoftmaxCrossEntropy, {MetricKind::kPrecision, MetricKind::kRecall}));
  EXPECT_FALSE(judge.asksForNothing());
  const std::vector<float> first = {0, 1, 1, 0}, second = {0, 1, 0, 1};
  const std::vector<uint8_t> bytes = {1, 1};
  const std::vector<int64_t> wide = {1, 0};
  judge.add(first, 2, DType::kUInt8, bytesOf(bytes));
  judge.add(second, 2, DType::kInt64, bytesOf(wide));
  const std::vector<MetricValue> values = judge.take();
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].name, "precision");
  EXPECT_EQ(values[1].name, "recall");
  BatchJudge other(
      modelWith(model::Loss::kSoftmaxCrossEntropy, {MetricKind::kPrecision, MetricKind::kRecall}));
  const std::vector<float> all = {0, 1, 1, 0, 0, 1, 0, 1};
  const std::vector<int32_t> classes = {1, 1, 1, 0};
  other.add(all, 4, DType::kInt32, bytesOf(classes));
  EXPECT_EQ(values, other.take());
}

TEST(BatchJudge, BeginsAnewWhenItsValuesAreTaken) {
  BatchJudge judge(modelWith(model::Loss::kMse, {MetricKind::kMae}));
  const std::vector<float> outputs = {1, 2}, near = {1, 3}, far = {4, 5};
  judge.add(outputs, 2, DType::kFloat32, bytesOf(near));
  EXPECT_EQ(judge.take().at(0).value, 0.5);
  EXPECT_TRUE(judge.take().empty());
  judge.add(outputs, 2, DType::kFloat32, bytesOf(far));
  EXPECT_EQ(judge.take().at(0).value, 3);
}

TEST(BatchJudge, AScalarsMeanWeighsEachBatchByItsExamples) {
  model::ModelSpec spec = modelWith(model::Loss::kMse, {});
  spec.scalars = {{.tensor = "hits", .mark = {}}};
  BatchJudge judge(spec);
  EXPECT_TRUE(judge.asksForNothing()) << "of outputs";
  ASSERT_EQ(judge.scalars(), 1u);
  EXPECT_TRUE(judge.take().empty()) << "no batch";
  judge.addScalar(0, 2, 3);
  judge.addScalar(0, 6, 1);
  EXPECT_EQ(judge.take(), (std::vector<MetricValue>{{"hits", 3}}));
  judge.addScalar(0, std::nan(""), 1);
  EXPECT_EQ(judge.take(), (std::vector<MetricValue>{{"hits", std::nullopt}}));
}

TEST(BatchJudge, AModelWithoutMetricsAsksForNothing) {
  EXPECT_TRUE(BatchJudge(modelWith(model::Loss::kMse, {})).asksForNothing());
}

}  // namespace
}  // namespace dtf::train
