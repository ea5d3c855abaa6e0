#include "common/train/evaluation_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/support/temporary_files.h"

namespace dtf::train {
namespace {

std::vector<PastEvaluation> historyOf(const std::string& metric,
                                      const std::vector<double>& values) {
  std::vector<PastEvaluation> history;
  for (const double value : values) {
    const uint64_t step = 10 * (history.size() + 1);
    history.push_back({step, step, {{metric, value}}});
  }
  return history;
}

TEST(EvaluationHistory, AccuracyIsToBeHighALossOrAnErrorLow) {
  for (const char* metric : {"accuracy", "auc", "top_5", "r2_score", "r2", "precision"})
    EXPECT_TRUE(isHigherBetter(metric)) << metric;
  for (const char* metric : {"loss", "mae", "mse", "rmse", "mean_absolute_error",
                             "mean_squared_error", "root_mean_squared_error"})
    EXPECT_FALSE(isHigherBetter(metric)) << metric;
}

TEST(EvaluationHistory, TheBestIsTheFirstOfEquals) {
  const std::vector<PastEvaluation> history = historyOf("accuracy", {0.5, 0.8, 0.8, 0.7});
  EXPECT_EQ(bestCheckpoint(history, "accuracy")->step, 20u);
  const std::vector<PastEvaluation> losses = historyOf("loss", {0.5, 0.3, 0.4});
  EXPECT_EQ(bestCheckpoint(losses, "loss")->step, 20u);
  EXPECT_EQ(bestCheckpoint(losses, "accuracy"), nullptr);
}

TEST(EvaluationHistory, AnEvaluationWithoutACheckpointIsNotKept) {
  std::vector<PastEvaluation> history = historyOf("loss", {0.5, 0.3, 0.4});
  history[1].checkpoint.reset();
  EXPECT_EQ(bestCheckpoint(history, "loss")->step, 30u);
}

TEST(EvaluationHistory, PatienceCountsEvaluationsSinceTheLastImprovement) {
  const cluster::EarlyStoppingSpec rule{.metric = "loss", .patience = 2};
  EXPECT_EQ(earlyStopReason({}, rule), "");
  EXPECT_EQ(earlyStopReason(historyOf("loss", {0.5, 0.6}), rule), "");
  EXPECT_EQ(earlyStopReason(historyOf("loss", {0.5, 0.6, 0.4, 0.4}), rule), "");
  EXPECT_EQ(earlyStopReason(historyOf("loss", {0.5, 0.6, 0.5}), rule),
            "loss has not improved on 0.5 of step 10 in 2 evaluations");
}

TEST(EvaluationHistory, AChangeHasToBeLargerThanMinDelta) {
  const cluster::EarlyStoppingSpec up{.metric = "accuracy", .patience = 1, .min_delta = 0.25};
  EXPECT_NE(earlyStopReason(historyOf("accuracy", {0.5, 0.75}), up), "");
  EXPECT_EQ(earlyStopReason(historyOf("accuracy", {0.5, 0.875}), up), "");
  const cluster::EarlyStoppingSpec down{.metric = "loss", .patience = 1, .min_delta = 0.25};
  EXPECT_NE(earlyStopReason(historyOf("loss", {0.75, 0.5}), down), "");
  EXPECT_EQ(earlyStopReason(historyOf("loss", {0.75, 0.375}), down), "");
}

// A job may ask for a metric later, and a metric may not be defined.
TEST(EvaluationHistory, AnEvaluationWithoutTheMetricDoesNotCount) {
  const cluster::EarlyStoppingSpec rule{.metric = "auc", .patience = 2};
  EXPECT_EQ(earlyStopReason(historyOf("loss", {0.5, 0.4, 0.3}), rule), "");
}

TEST(EvaluationHistory, ALossThatIsNoNumberIsNoImprovement) {
  std::vector<PastEvaluation> history = historyOf("loss", {0.5, 0.4, 0.3});
  history[1].values.clear();
  history[2].values.clear();
  EXPECT_NE(earlyStopReason(history, {.metric = "loss", .patience = 2}), "");
}

TEST(EvaluationHistory, AMetricIsFoundUnderEachOfItsNames) {
  const std::vector<PastEvaluation> history = historyOf("rmse", {0.5, 0.3, 0.4});
  EXPECT_EQ(bestCheckpoint(history, "root_mean_squared_error")->step, 20u);
}

TEST(EvaluationHistory, TheFileKeepsWhatIsFinite) {
  const testing::TemporaryFiles files;
  EXPECT_TRUE(readEvaluations(".").empty());
  Evaluation evaluation{.loss = 0.25, .accuracy = 0.5};
  evaluation.metrics = {{"auc", std::nullopt}, {"r2", std::nan("")}, {"mae", 2.0}};
  std::vector<PastEvaluation> history = {pastEvaluation(7, evaluation)};
  history[0].checkpoint = 9;
  history.push_back(pastEvaluation(14, evaluation));
  writeEvaluations(".", history);
  const std::vector<PastEvaluation> read = readEvaluations(".");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].step, 7u);
  EXPECT_EQ(read[0].checkpoint, 9u);
  EXPECT_EQ(read[0].value("mae"), 2.0);
  EXPECT_EQ(read[0].value("auc"), std::nullopt);
  EXPECT_EQ(read[0].value("r2"), std::nullopt);
  EXPECT_EQ(read[1].checkpoint, std::nullopt);
}

TEST(EvaluationHistory, ADamagedFileIsNamed) {
  const testing::TemporaryFiles files;
  std::ofstream("evaluations.json") << R"({"schema": 1, "evaluations": [{"step": -1}]})";
  try {
    readEvaluations(".");
    FAIL() << "it is read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_NE(error.message().find("./evaluations.json: "), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace dtf::train
