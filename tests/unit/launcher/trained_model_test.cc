#include "launcher/trained_model.h"

#include <gmock/gmock.h>

#include "common/train/evaluation_history.h"
#include "tests/unit/launcher/trained_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TrainedModelTest : public TrainedTest {
 protected:
  std::string openRefusal(ErrorCode code) {
    return refusal(code, [this] {
      openTrainedModel(job_, options_);
      return 0;
    });
  }
};

TEST_F(TrainedModelTest, TheNewestCheckpointOfTheRunIsOpened) {
  imported();
  const train::SavedModel model = openTrainedModel(job_, options_);
  EXPECT_EQ(model.step, 0u);
  ASSERT_EQ(model.variables.size(), 2u);
  EXPECT_EQ(model.variables[1].name, "softmax/biases");
  EXPECT_EQ(model.variables[1].value.as<float>()[3], 10);
  EXPECT_FALSE(model.moving_averages);
}

TEST_F(TrainedModelTest, AFolderMayBeNamedWhereverItIs) {
  imported();
  const auto moved = std::filesystem::path(folder_.path()) / "elsewhere";
  std::filesystem::rename(runDir() / "checkpoints/step-0", moved);
  openRefusal(ErrorCode::kBadData);
  options_.checkpoint = moved.string();
  EXPECT_EQ(openTrainedModel(job_, options_).checkpoint, moved);
}

TEST_F(TrainedModelTest, ABetterCheckpointThanTheNewestIsNamed) {
  imported();
  const std::filesystem::path checkpoints = runDir() / "checkpoints";
  std::filesystem::create_directories(checkpoints / "step-3");
  const auto said = [&](uint64_t best) {
    train::PastEvaluation past;
    past.step = best;
    past.checkpoint = best;
    past.values = {{"accuracy", 0.5}};
    train::writeEvaluations(checkpoints, std::vector{past});
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(openTrainedModel(job_, options_).step, 0u);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(3), Not(HasSubstr("--best"))) << "the job keeps none";
  job_.train->checkpoint->keep_best = "accuracy";
  EXPECT_THAT(said(3), HasSubstr("dtf-launch: checkpoint step 0 (newest); --best would take step "
                                 "3\n"));
  EXPECT_THAT(said(0), Not(HasSubstr("--best")));
  options_.checkpoint = "0";
  EXPECT_THAT(said(3), Not(HasSubstr("--best"))) << "this one was asked for";
}

TEST_F(TrainedModelTest, AJobWithoutAModelIsRefusedAtItsFile) {
  EXPECT_EQ(&trainOf(job_), &*job_.train);
  job_.train.reset();
  EXPECT_THAT(refusal(ErrorCode::kBadConfig,
                      [this] {
                        trainOf(job_);
                        return 0;
                      }),
              HasSubstr("missing key 'train': a TRAIN.yaml"));
}

}  // namespace
}  // namespace dtf::launcher
