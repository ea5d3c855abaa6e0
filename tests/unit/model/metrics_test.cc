#include "common/model/metrics.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/model/model_graph.h"
#include "common/model/read_model.h"
#include "tests/unit/model/models.h"

namespace dtf::model {
namespace {

ModelSpec modelWith(const MetricSpec& metric, Loss loss, DType labels, int64_t units = 10) {
  ModelSpec model = softmaxModel();
  model.layers = {flatten(), dense("out", units)};
  model.accuracy = false;
  model.loss.kind = loss;
  model.labels_dtype = labels;
  model.metrics = {metric};
  return model;
}

std::string refusalOf(const ModelSpec& model) {
  try {
    buildEvaluationGraph(model, 4);
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(Metrics, AreReadInTheOrderOfTheFileEachOnce) {
  const std::string text =
      "{input: {shape: [4]}, layers: [{dense: {units: 9}}], loss: mse, metrics: [r2, top_3, "
      "accuracy, mae, r2, top_5, top_3]}";
  yaml::Report report;
  const auto node = yaml::parseYaml(text, report.addFile("m.yaml", text), report);
  report.throwIfAny();
  const ModelSpec model = readModel(*node, report);
  report.throwIfAny();
  EXPECT_TRUE(model.accuracy);
  EXPECT_EQ(
      model.metrics,
      (std::vector<MetricSpec>{
          MetricKind::kR2, {MetricKind::kTopK, 3}, MetricKind::kMae, {MetricKind::kTopK, 5}}));
}

TEST(Metrics, HaveTheNamesThatTheFileGives) {
  for (const char* name :
       {"sparse_top_1_categorical_accuracy", "sparse_top_20_categorical_accuracy", "auc",
        "r2_score", "top_1", "top_20", "r2", "mae", "mean_absolute_error"}) {
    ASSERT_TRUE(metricNamed(name)) << name;
    EXPECT_EQ(nameOf(*metricNamed(name)), name);
  }
  for (const char* name : {"accuracy", "top_", "top_0", "top_05", "top_-1", "top_5x", "top_9999999",
                           "loss", "", "top_k", "sparse_top_", "sparse_top__categorical_accuracy",
                           "sparse_top_5", "sparse_top_0_categorical_accuracy"})
    EXPECT_FALSE(metricNamed(name)) << name;
}

TEST(Metrics, AnOldNameIsTheSameMetric) {
  for (const auto& [was, now] : std::vector<std::pair<std::string, std::string>>{
           {"top_3", "sparse_top_3_categorical_accuracy"},
           {"rmse", "root_mean_squared_error"},
           {"r2", "r2_score"}}) {
    EXPECT_EQ(metricNamed(was), metricNamed(now)) << was;
    EXPECT_EQ(renamed(*metricNamed(was)), now);
    EXPECT_EQ(renamed(*metricNamed(now)), std::nullopt);
  }
  for (const auto& [was, now] : std::vector<std::pair<std::string, std::string>>{
           {"mse", "mean_squared_error"}, {"mae", "mean_absolute_error"}}) {
    EXPECT_EQ(metricNamed(was), metricNamed(now)) << was;
    EXPECT_EQ(renamed(*metricNamed(was)), std::nullopt) << "Keras has both";
  }
  EXPECT_EQ(metricNamed("sparse_top_k_categorical_accuracy"), metricNamed("top_5"));
}

TEST(Metrics, ThatSayNothingOfAModelAreRefused) {
  constexpr DType kClasses = DType::kUInt8, kTargets = DType::kFloat32;
  EXPECT_EQ(refusalOf(modelWith(MetricKind::kTopK, Loss::kHinge, kClasses)), "");
  EXPECT_NE(refusalOf(modelWith(MetricKind::kTopK, Loss::kHinge, kClasses, 5)).find("always 1"),
            std::string::npos);
  EXPECT_EQ(refusalOf(modelWith({MetricKind::kTopK, 4}, Loss::kHinge, kClasses, 5)), "");
  EXPECT_NE(refusalOf(modelWith(MetricKind::kTopK, Loss::kMse, kTargets)).find("counts classes"),
            std::string::npos);
  for (const MetricKind kind : {MetricKind::kAuc, MetricKind::kPrecision, MetricKind::kRecall}) {
    EXPECT_EQ(refusalOf(modelWith(kind, Loss::kSoftmaxCrossEntropy, kClasses)), "");
    EXPECT_EQ(refusalOf(modelWith(kind, Loss::kSigmoidCrossEntropy, kTargets)), "");
    EXPECT_EQ(refusalOf(modelWith(kind, Loss::kMse, kClasses, 1)), "");
    EXPECT_NE(refusalOf(modelWith(kind, Loss::kMse, kTargets)).find("targets of any size"),
              std::string::npos);
  }
  for (const MetricKind kind :
       {MetricKind::kMae, MetricKind::kMse, MetricKind::kRmse, MetricKind::kR2}) {
    EXPECT_EQ(refusalOf(modelWith(kind, Loss::kHuber, kTargets, 3)), "");
    EXPECT_NE(refusalOf(modelWith(kind, Loss::kSigmoidCrossEntropy, kTargets)).find("makes logits"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace dtf::model
