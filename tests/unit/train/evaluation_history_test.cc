#include "common/train/evaluation_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
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

TEST(EvaluationHistory, OfEqualOnesTheBestHasTheLowestLoss) {
  std::vector<PastEvaluation> history = historyOf("accuracy", {0.5, 0.8, 0.8, 0.8, 0.7});
  const double losses[] = {0.9, 0.4, 0.2, 0.6, 0.1};
  for (size_t i = 0; i < history.size(); ++i) history[i].values.emplace_back("loss", losses[i]);
  EXPECT_EQ(bestCheckpoint(history, "accuracy")->step, 30u);
  history[2].values.pop_back();  // it was no number
  EXPECT_EQ(bestCheckpoint(history, "accuracy")->step, 20u);
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

// A restarted job may ask for a new metric, and a metric may be undefined.
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

// The oldest go, and the answers stay: the best one is far back, and patience counts all.
TEST(EvaluationHistory, ALongHistoryIsBoundedAndDecidesAsAWholeOne) {
  std::vector<double> losses(3000, 0.5);
  losses[1] = 0.3;
  const std::vector<PastEvaluation> whole = historyOf("loss", losses);
  for (const uint64_t patience : {2998, 2999}) {
    const cluster::EarlyStoppingSpec rule{.metric = "loss", .patience = patience};
    std::vector<PastEvaluation> bounded;
    for (const PastEvaluation& past : whole) {
      bounded.push_back(past);
      boundHistory(bounded, "loss", &rule);
    }
    EXPECT_EQ(bounded.size(), kEvaluationsMax);
    EXPECT_EQ(bestCheckpoint(bounded, "loss")->step, 20u);
    EXPECT_EQ(bounded.back().step, 30'000u);
    EXPECT_EQ(earlyStopReason(bounded, rule), earlyStopReason(whole, rule));
    EXPECT_EQ(earlyStopReason(bounded, rule).empty(), patience == 2999);
    const testing::TemporaryFiles files;
    writeEvaluations(".", bounded);
    EXPECT_EQ(earlyStopReason(readEvaluations("."), rule), earlyStopReason(whole, rule));
  }
}

// A noisy accuracy that rises slowly: most improvements are smaller than a min_delta, and the best
// checkpoint by the loss is an old one.
std::vector<PastEvaluation> slowlyRising(uint64_t seed, size_t size) {
  std::vector<PastEvaluation> history;
  for (size_t i = 0; i < size; ++i) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const double noise = static_cast<double>(seed >> 40) * 0x1p-24;
    const double value = 1e-4 * static_cast<double>(i) + 0.05 * noise;
    const uint64_t step = 10 * (i + 1);
    PastEvaluation past{.step = step, .checkpoint = step, .values = {{"loss", 0.5}}};
    if (i == 4) past.values[0].second = 0.1;
    if (i % 7 != 0) past.values.emplace_back("accuracy", value);  // an undefined one does not count
    if (i % 11 == 0) past.values.clear();                         // the loss was no number
    history.push_back(std::move(past));
  }
  return history;
}

// The baseline is the last improvement, and which one that is depends on all before it.
TEST(EvaluationHistory, ABoundedHistoryFindsTheImprovementsOfAWholeOne) {
  const cluster::EarlyStoppingSpec rule{.metric = "accuracy", .patience = 1, .min_delta = 0.03};
  for (const uint64_t seed : {1, 2}) {
    const std::vector<PastEvaluation> whole = slowlyRising(seed, 1600);
    std::vector<PastEvaluation> bounded;
    for (size_t i = 0; i < whole.size(); ++i) {
      bounded.push_back(whole[i]);
      boundHistory(bounded, "loss", &rule);
      if (i % 50 != 0 || i < kEvaluationsMax) continue;
      const testing::TemporaryFiles files;
      writeEvaluations(".", bounded);
      bounded = readEvaluations(".");
      const Improvement expected = improvementOf(std::span(whole).first(i + 1), rule);
      const Improvement got = improvementOf(bounded, rule);
      ASSERT_EQ(got.best->step, expected.best->step) << "seed " << seed << ", evaluation " << i;
      ASSERT_EQ(got.since, expected.since) << "seed " << seed << ", evaluation " << i;
      ASSERT_EQ(bestCheckpoint(bounded, "loss")->step, 50u);
    }
    EXPECT_EQ(bounded.size(), kEvaluationsMax);
  }
}

// A job that goes back loses its last improvements, so the one before counts again.
TEST(EvaluationHistory, ABoundedHistoryDecidesAsAWholeOneAfterGoingBack) {
  const cluster::EarlyStoppingSpec rule{.metric = "accuracy", .patience = 1, .min_delta = 0.03};
  const std::vector<PastEvaluation> whole = slowlyRising(4, 1600);
  std::vector<PastEvaluation> bounded;
  for (const PastEvaluation& past : whole) {
    bounded.push_back(past);
    boundHistory(bounded, "loss", &rule);
  }
  for (size_t lost = 0; lost < 900; lost += 50) {
    const Improvement expected = improvementOf(std::span(whole).first(whole.size() - lost), rule);
    const Improvement got = improvementOf(std::span(bounded).first(bounded.size() - lost), rule);
    ASSERT_EQ(got.best->step, expected.best->step) << lost << " are lost";
    ASSERT_EQ(got.since, expected.since) << lost << " are lost";
  }
}

// An evaluation with a loss, but without the metric, is none of the evaluations that it counts.
TEST(EvaluationHistory, ARemovedEvaluationWithoutTheMetricDoesNotCount) {
  const cluster::EarlyStoppingSpec rule{.metric = "auc", .patience = 1};
  std::vector<PastEvaluation> bounded = historyOf("auc", {0.9});
  for (uint64_t step = 20; step < 12'000; step += 10) {
    const bool has_metric = step % 20 == 0;
    bounded.push_back({step, step, {{"loss", 0.5}}});
    if (has_metric) bounded.back().values.emplace_back("auc", 0.5);
    boundHistory(bounded, "", &rule);
  }
  EXPECT_EQ(bounded.size(), kEvaluationsMax);
  EXPECT_EQ(improvementOf(bounded, rule).since, 599u);
}

TEST(EvaluationHistory, AFileWithoutMarksOfImprovementsIsRead) {
  const testing::TemporaryFiles files;
  files.write("evaluations.json", R"({"schema": 1, "evaluations": [
{"step": 10, "values": {"loss": 0.5}},
{"step": 90, "values": {"loss": 0.375}, "left_out": 7}
]}
)");
  const std::vector<PastEvaluation> read = readEvaluations(".");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].left_out, 7u);
  const cluster::EarlyStoppingSpec rule{.metric = "loss", .patience = 1, .min_delta = 0.25};
  EXPECT_EQ(improvementOf(read, rule).best->step, 10u) << "a change of less than min_delta";
  EXPECT_EQ(improvementOf(read, rule).since, 8u);
}

TEST(EvaluationHistory, AFileWhoseLastLineIsCutShortKeepsTheOthers) {
  const testing::TemporaryFiles files;
  writeEvaluations(".", historyOf("loss", {0.5, 0.3, 0.4}));
  const uint64_t size = std::filesystem::file_size("evaluations.json");
  for (uint64_t missing = 1; missing < 30; ++missing) {
    writeEvaluations(".", historyOf("loss", {0.5, 0.3, 0.4}));
    std::filesystem::resize_file("evaluations.json", size - missing);
    const std::vector<PastEvaluation> read = readEvaluations(".");
    ASSERT_EQ(read.size(), 2u) << missing << " bytes are missing";
    EXPECT_EQ(read[1].value("loss"), 0.3);
  }
}

TEST(EvaluationHistory, AFileThatIsTooLargeIsNamedWithARemedy) {
  const testing::TemporaryFiles files;
  std::ofstream("evaluations.json") << "{";
  std::filesystem::resize_file("evaluations.json", (64 << 20) + 1);
  try {
    readEvaluations(".");
    FAIL() << "it is read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    for (const char* part : {"./evaluations.json: ", "larger than the limit", "; remove it, and"})
      EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
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
