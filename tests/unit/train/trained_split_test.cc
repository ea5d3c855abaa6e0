#include "common/train/trained_split.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/train/checkpointer.h"

namespace dtf::train {
namespace {

checkpoint::Manifest savedWith(const std::string& settings) {
  checkpoint::Manifest saved;
  saved.extra[kSettingsKey] = settings;
  return saved;
}

TEST(TrainedSplit, IsThatOfTheJobThatSaved) {
  EXPECT_EQ(trainedSplit(savedWith("data.seed=7\ndata.eval_split=0.25\nsteps=3")),
            SplitSetting{0.25});
  EXPECT_EQ(trainedSplit(savedWith("data.eval_split=0.25\ndata.eval_split.by=time day=x")),
            (SplitSetting{0.25, "time day=x"}));
  EXPECT_EQ(trainedSplit(savedWith("data.seed=7")), SplitSetting{}) << "all examples were trained";
  EXPECT_EQ(trainedSplit(savedWith("data.eval_split=much")), std::nullopt);
  EXPECT_EQ(trainedSplit({}), std::nullopt);
}

TEST(TrainedSplit, ALargerShareHasExamplesThatWereTrained) {
  EXPECT_EQ(trainedExamplesText(SplitSetting{0.2}, {0.4}),
            "some examples that are evaluated were trained: data.eval_split 0.2 -> 0.4");
  EXPECT_EQ(trainedExamplesText(SplitSetting{}, {0.4}),
            "some examples that are evaluated were trained: data.eval_split none -> 0.4");
}

TEST(TrainedSplit, TheSameShareASmallerOneAndNoneHaveNoSuchExamples) {
  EXPECT_EQ(trainedExamplesText(SplitSetting{0.2}, {0.2}), "");
  EXPECT_EQ(trainedExamplesText(SplitSetting{0.2}, {0.1}), "");
  EXPECT_EQ(trainedExamplesText(SplitSetting{0.2}, {}), "");
  EXPECT_EQ(trainedExamplesText(std::nullopt, {0.4}), "");
}

TEST(TrainedSplit, AnotherWayHasExamplesThatWereTrained) {
  const SplitSetting hash{0.2}, by_day{0.2, "time day"}, by_user{0.2, "group user"};
  const std::string begin = "some examples that are evaluated were trained: data.eval_split ";
  EXPECT_EQ(trainedExamplesText(hash, by_day), begin + "0.2 by hash -> 0.2 by time day");
  EXPECT_EQ(trainedExamplesText(by_user, hash), begin + "0.2 by group user -> 0.2 by hash");
  EXPECT_EQ(trainedExamplesText(by_user, {0.1, "group shop"}),
            begin + "0.2 by group user -> 0.1 by group shop")
      << "a smaller share has others, too";
  EXPECT_EQ(trainedExamplesText(SplitSetting{}, by_day), begin + "none -> 0.2 by time day");
  EXPECT_EQ(trainedExamplesText(by_user, {0.1, "group user"}), "");
  EXPECT_EQ(trainedExamplesText(by_user, {}), "");
}

TEST(TrainedSplit, TheSettingOfADataSetIsThatOfItsJob) {
  cluster::DatasetSpec data;
  EXPECT_EQ(splitSettingOf(data), SplitSetting{});
  data.split = cluster::EvalSplit{0.3, true};
  EXPECT_EQ(splitSettingOf(data), SplitSetting{0.3});
  data.split->by = data.csv.split_by = cluster::SplitBy::kGroup;
  data.csv.split_column = "user";
  EXPECT_EQ(splitSettingOf(data), (SplitSetting{0.3, "group user"}));
  const std::vector<arena::Setting> settings = {
      {"data.seed", "7"}, {"data.eval_split", "0.3"}, {"data.eval_split.by", "group user"}};
  EXPECT_EQ(splitSettingOf(settings), splitSettingOf(data));
  EXPECT_EQ(splitSettingOf(std::span<const arena::Setting>()), SplitSetting{});
}

}  // namespace
}  // namespace dtf::train
