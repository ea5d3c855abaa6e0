// The chief finds out whether the ps see its files.

#include "common/train/checkpointer.h"

#include <cerrno>

#include "tests/unit/train/checkpointer_fixture.h"

namespace dtf::train {
namespace {

class SharingTest : public CheckpointerTest {
 protected:
  SharingTest() { elsewhere_ = true; }
  bool left() {
    for (const auto& file : disk_.files())
      if (file.filename().string().starts_with("seen-")) return true;
    return false;
  }
};

TEST_F(SharingTest, WhoSeesTheChiefsFilesHasTheSameFolder) {
  const auto starting = chief(kSync);
  EXPECT_NE(starting->restore(), std::nullopt);
  EXPECT_EQ(ps_.calls(), CallTexts{"see"});
  EXPECT_FALSE(left());
  starting->restore();
  EXPECT_EQ(ps_.calls(), CallTexts{}) << "asked once";
}

TEST_F(SharingTest, OnOneHostNobodyIsAsked) {
  elsewhere_ = false;
  chief(kSync)->restore();
  EXPECT_EQ(ps_.calls(), CallTexts{});
}

TEST_F(SharingTest, WhoDoesNotIsNamedBeforeAnybodyTrains) {
  ps_.setSees(false);
  try {
    chief(kSync)->start();
    FAIL() << "it trains";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_EQ(
        error.message(),
        "job.yaml:12:3: error: ps/0 does not see the chief's files in /run/checkpoints: set "
        "`gather: true` here, and worker/0 keeps the files of all ps, or `stay: true`, and each "
        "ps keeps its own; or give the job a run_dir on a disk that the hosts share");
  }
  EXPECT_EQ(ps_.calls(), CallTexts{"see"});
  EXPECT_FALSE(left());
}

TEST_F(SharingTest, ADiskThatIsFullKeepsNobodyFromTraining) {
  disk_.makeFolder(kRunDir / "checkpoints");
  disk_.failAll(testing::SimulatedDisk::Op::kCreate, ENOSPC);
  EXPECT_NE(chief(kSync)->restore(), std::nullopt);
  EXPECT_EQ(ps_.calls(), CallTexts{});
}

TEST_F(SharingTest, APsThatIsLostMeanwhileIsAskedAgain) {
  ps_.fail("see", Error(ErrorCode::kUnavailable, "lost ps/0"));
  EXPECT_NE(chief(kSync)->start(), std::nullopt);
  EXPECT_EQ(ps_.calls(), (CallTexts{"see", "see"}));
  EXPECT_FALSE(left());
}

TEST_F(SharingTest, WhatADeadChiefShowedIsSwept) {
  folder().prepare();
  disk_.create(kRunDir / "checkpoints/seen-77.1")->close();
  chief(kSync)->restore();
  EXPECT_FALSE(left());
}

}  // namespace
}  // namespace dtf::train
