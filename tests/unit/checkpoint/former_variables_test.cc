#include "common/checkpoint/former_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtf::checkpoint {
namespace {

using ::testing::ElementsAre;

Manifest savedWith(const std::vector<std::string>& names) {
  Manifest manifest;
  ShardFile shard;
  for (const std::string& name : names) {
    manifest.variables.push_back({name, Shape{2}, {"Adam"}});
    for (const std::string& tensor : {name, name + "/Adam"}) {
      StoredPart part;
      part.name = tensor;
      shard.parts.push_back(part);
    }
  }
  manifest.shards = {shard};
  return manifest;
}

std::vector<std::string> renamedTo(const std::vector<std::string>& saved,
                                   const std::vector<std::string>& wanted) {
  return namesOf(underNames(savedWith(saved), wanted).variables);
}

TEST(FormerVariables, GetTheNamesThatTheJobGivesThem) {
  const Manifest renamed =
      underNames(savedWith({"dense/weights", "batch_norm/gamma", "batch_norm_1/gamma"}),
                 {"batch_normalization_1/gamma", "dense/weights", "batch_normalization/gamma"});
  EXPECT_THAT(namesOf(renamed.variables), ElementsAre("dense/weights", "batch_normalization/gamma",
                                                      "batch_normalization_1/gamma"));
  EXPECT_THAT(namesOf(renamed.shards[0].parts),
              ElementsAre("dense/weights", "dense/weights/Adam", "batch_normalization/gamma",
                          "batch_normalization/gamma/Adam", "batch_normalization_1/gamma",
                          "batch_normalization_1/gamma/Adam"));
}

TEST(FormerVariables, AJobOfAnOldFileTakesACheckpointOfTodaysNames) {
  EXPECT_THAT(renamedTo({"batch_normalization/gamma"}, {"batch_norm/gamma"}),
              ElementsAre("batch_norm/gamma"));
}

TEST(FormerVariables, AFileMayBeChangedLayerByLayer) {
  EXPECT_THAT(renamedTo({"batch_norm/gamma", "batch_norm_1/gamma"},
                        {"batch_normalization/gamma", "batch_norm_1/gamma"}),
              ElementsAre("batch_normalization/gamma", "batch_norm_1/gamma"));
}

TEST(FormerVariables, KeepTheirNamesWhereTheJobHasThem) {
  EXPECT_THAT(renamedTo({"batch_norm/gamma", "batch_normalization/gamma"},
                        {"batch_normalization/gamma", "batch_norm/gamma"}),
              ElementsAre("batch_norm/gamma", "batch_normalization/gamma"));
}

TEST(FormerVariables, KeepTheirNamesWhereNothingTellsWhichIsMeant) {
  EXPECT_THAT(renamedTo({"batch_norm/gamma", "batch_normalization/gamma"}, {"other/gamma"}),
              ElementsAre("batch_norm/gamma", "batch_normalization/gamma"));
  EXPECT_THAT(renamedTo({"concat/w"}, {"elsewhere/w"}), ElementsAre("concat/w"));
}

}  // namespace
}  // namespace dtf::checkpoint
