#include "common/train/trained_split.h"

#include <gtest/gtest.h>

#include "common/train/checkpointer.h"

namespace dtf::train {
namespace {

checkpoint::Manifest savedWith(const std::string& settings) {
  checkpoint::Manifest saved;
  saved.extra[kSettingsKey] = settings;
  return saved;
}

TEST(TrainedSplit, IsThatOfTheJobThatSaved) {
  EXPECT_EQ(trainedSplit(savedWith("data.seed=7\ndata.eval_split=0.25\nsteps=3")), 0.25);
  EXPECT_EQ(trainedSplit(savedWith("data.seed=7")), 0) << "all examples were trained";
  EXPECT_EQ(trainedSplit(savedWith("data.eval_split=much")), std::nullopt);
  EXPECT_EQ(trainedSplit({}), std::nullopt);
}

TEST(TrainedSplit, ALargerShareHasExamplesThatWereTrained) {
  EXPECT_EQ(trainedExamplesText(0.2, 0.4),
            "some examples that are evaluated were trained: data.eval_split 0.2 -> 0.4");
  EXPECT_EQ(trainedExamplesText(0, 0.4),
            "some examples that are evaluated were trained: data.eval_split none -> 0.4");
}

TEST(TrainedSplit, TheSameShareASmallerOneAndNoneHaveNoSuchExamples) {
  EXPECT_EQ(trainedExamplesText(0.2, 0.2), "");
  EXPECT_EQ(trainedExamplesText(0.2, 0.1), "");
  EXPECT_EQ(trainedExamplesText(0.2, 0), "");
  EXPECT_EQ(trainedExamplesText(std::nullopt, 0.4), "");
}

}  // namespace
}  // namespace dtf::train
