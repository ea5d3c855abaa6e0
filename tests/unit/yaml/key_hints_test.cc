#include "common/yaml/key_hints.h"

#include <gtest/gtest.h>

#include "common/yaml/keys.h"

namespace dtf::yaml {
namespace {

constexpr Key kFileKeys[] = {map("metrics", "of the process"), map("train", "the training")};
constexpr Key kTrainKeys[] = {map("model", "the network"), map("rule", "the rule")};
constexpr Key kModelKeys[] = {list("metrics", "to evaluate")};
constexpr Key kRuleKeys[] = {number("learning_rate", {0, 1}, "the step")};
constinit const Table kFile{"", kFileKeys};
constinit const Table kTrain{"train", kTrainKeys};
constinit const Table kModel{"train.model", kModelKeys};
constinit const Table kRule{"train.rule", kRuleKeys};
constexpr const Table* kHinted[] = {&kFile, &kTrain, &kModel, &kRule};

TEST(KeyHints, AKeyBelowTheMapComesBeforeOneOfTheFile) {
  EXPECT_EQ(ownerHint({kHinted, kTrain}, "metrics"), " - it belongs in train.model");
  EXPECT_EQ(ownerHint({kHinted, kTrain, nullptr, true}, "metrics"),
            " - write --set train.model.metrics=VALUE");
  EXPECT_EQ(ownerHint({kHinted, kRule}, "train"), " - it belongs in the cluster file");
  EXPECT_EQ(ownerHint({kHinted, kTrain}, "metric"), "");
}

TEST(KeyHints, AWordOfAnotherFrameworkNamesTheKeyAndItsPlace) {
  EXPECT_EQ(aliasHint({kHinted, kRule}, "lr"), " - did you mean 'learning_rate'?");
  EXPECT_EQ(aliasHint({kHinted, kModel}, "lr"), " - 'learning_rate' belongs in train.rule");
  EXPECT_EQ(aliasHint({kHinted, kTrain, nullptr, true}, "lr"),
            " - write --set train.rule.learning_rate=VALUE");
  EXPECT_EQ(aliasHint({kHinted, kRule}, "fc"), "") << "no table has it";
  EXPECT_EQ(aliasHint({kHinted, kRule}, "learning_rat"), "");
}

}  // namespace
}  // namespace dtf::yaml
