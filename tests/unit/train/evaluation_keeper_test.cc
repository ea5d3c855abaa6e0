#include "common/train/evaluation_keeper.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_files.h"

namespace dtf::train {
namespace {

using Steps = std::vector<uint64_t>;

cluster::TrainSpec keepingBest() {
  cluster::TrainSpec train;
  train.checkpoint.emplace().keep_best = "loss";
  return train;
}

Evaluation lossOf(double loss) {
  return {.loss = loss};
}

TEST(EvaluationKeeper, TheBestCheckpointStays) {
  const testing::TemporaryFiles files;
  EvaluationKeeper keeper(".", keepingBest());
  EXPECT_TRUE(keeper.wantsCheckpoints());
  EXPECT_EQ(keeper.kept(), Steps{});
  keeper.saved(10, 10);  // the save may be done before the evaluation
  EXPECT_EQ(keeper.kept(), Steps{10}) << "it is being evaluated";
  keeper.add(10, lossOf(0.5));
  EXPECT_EQ(keeper.kept(), Steps{10});
  keeper.add(20, lossOf(0.4));  // or behind it
  EXPECT_EQ(keeper.kept(), Steps{10});
  keeper.saved(20, 23);
  EXPECT_EQ(keeper.kept(), Steps{23});
  keeper.saved(30, 30);
  keeper.add(30, lossOf(0.45));
  EXPECT_EQ(keeper.kept(), Steps{23});
  EXPECT_EQ(keeper.best()->step, 20u);
}

TEST(EvaluationKeeper, AJobThatGoesOnForgetsWhatComesAgain) {
  const testing::TemporaryFiles files;
  cluster::TrainSpec train = keepingBest();
  train.early_stopping = cluster::EarlyStoppingSpec{.patience = 2};
  {
    EvaluationKeeper keeper(".", train);
    double loss = 0.5;
    for (const uint64_t step : {10, 20, 30, 40}) {
      keeper.saved(step, step);
      keeper.add(step, lossOf(step <= 20 ? loss -= 0.1 : 0.5));
    }
    EXPECT_NE(keeper.whyEnd(), "");
  }
  std::filesystem::create_directory("step-20");
  EvaluationKeeper keeper(".", train);
  keeper.goOnFrom(30);
  EXPECT_EQ(keeper.whyEnd(), "") << "the evaluation of step 40 is to come";
  EXPECT_EQ(keeper.kept(), Steps{20});
  keeper.add(40, lossOf(0.5));
  EXPECT_EQ(keeper.whyEnd(), "loss has not improved on 0.3 of step 20 in 2 evaluations");
  keeper.goOnFrom(0);
  EXPECT_EQ(keeper.kept(), Steps{});
  EXPECT_TRUE(readEvaluations(".").empty());
}

// The file is written once for each evaluation.
TEST(EvaluationKeeper, TheFileDoesNotGrowWithTheJob) {
  const testing::TemporaryFiles files;
  std::vector<PastEvaluation> history;
  for (uint64_t step = 1; step <= kEvaluationsMax + 500; ++step)
    history.push_back({step, std::nullopt, {{"loss", 0.5}}});
  writeEvaluations(".", history);
  EvaluationKeeper keeper(".", keepingBest());
  keeper.goOnFrom(history.back().step);
  keeper.add(2000, lossOf(0.5));
  const std::vector<PastEvaluation> kept = readEvaluations(".");
  EXPECT_EQ(kept.size(), kEvaluationsMax);
  EXPECT_EQ(kept.back().step, 2000u);
  EXPECT_EQ(kept.front().left_out, 501u);
}

TEST(EvaluationKeeper, StepsThatAreTrainedAgainReplaceTheirEvaluations) {
  const testing::TemporaryFiles files;
  EvaluationKeeper keeper(".", keepingBest());
  keeper.saved(10, 10);
  keeper.add(10, lossOf(0.5));
  keeper.saved(20, 20);
  keeper.add(20, lossOf(0.1));
  keeper.add(10, lossOf(0.4));  // the ps went back
  EXPECT_EQ(keeper.kept(), Steps{});
  keeper.saved(10, 10);
  EXPECT_EQ(keeper.kept(), Steps{10});
}

// Its save may be done before the evaluation: the entry of the lost one must not have taken it.
TEST(EvaluationKeeper, TheFirstEvaluationAfterALossKeepsItsCheckpoint) {
  const testing::TemporaryFiles files;
  EvaluationKeeper keeper(".", keepingBest());
  keeper.saved(10, 10);
  keeper.add(10, lossOf(0.5));
  keeper.add(20, lossOf(0.1));
  keeper.saved(30, 30);  // and it is being evaluated
  keeper.goBack(15);
  EXPECT_EQ(keeper.kept(), Steps{10});
  EXPECT_EQ(readEvaluations(".").size(), 1u);
  keeper.saved(20, 20);
  keeper.add(20, lossOf(0.4));
  EXPECT_EQ(keeper.kept(), Steps{20});
  keeper.goBack(20);
  EXPECT_EQ(keeper.kept(), Steps{20}) << "it is of the values that all went back to";
}

TEST(EvaluationKeeper, AnEvaluationOfLostParametersIsDropped) {
  const testing::TemporaryFiles files;
  EvaluationKeeper keeper(".", keepingBest());
  keeper.add(10, lossOf(0.5));
  keeper.goBack(5);
  keeper.add(20, lossOf(0.4), [] { return false; });
  EXPECT_TRUE(readEvaluations(".").empty());
  keeper.add(10, lossOf(0.5), [] { return true; });
  EXPECT_EQ(readEvaluations(".").size(), 1u);
}

}  // namespace
}  // namespace dtf::train
