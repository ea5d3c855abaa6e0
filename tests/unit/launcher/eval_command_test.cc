#include <gmock/gmock.h>

#include "common/base/json.h"
#include "tests/unit/launcher/trained_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class EvalCommand : public TrainedTest {};

// A model that takes every image for a 3 is right for a tenth of the digits.
TEST_F(EvalCommand, PrintsHowGoodTheCheckpointIs) {
  imported();
  const std::string text = printed([this] { return eval(job_, options_); });
  EXPECT_THAT(text, StartsWith("tiny: step 0: accuracy 0."));
  EXPECT_THAT(text, HasSubstr(", loss "));
  EXPECT_THAT(text, HasSubstr(" on 20 examples\n  checkpoint  " + runDir().string()));
  EXPECT_EQ(printed([this] { return eval(job_, options_); }), text) << "the same each time";
}

TEST_F(EvalCommand, ReportsTheFiguresOfEachClass) {
  imported();
  options_.report = true;
  const std::string text = printed([this] { return eval(job_, options_); });
  EXPECT_THAT(text, HasSubstr("\n  class             precision  recall  f1      support\n  0   "));
  EXPECT_THAT(text, HasSubstr("\n  confusion: "));
  options_.json = true;
  const Json said = Json::parse(printed([this] { return eval(job_, options_); }));
  EXPECT_EQ(said["report"]["examples"], 20);
  EXPECT_EQ(said["report"]["accuracy"], said["accuracy"]);
  EXPECT_EQ(said["report"]["classes"][3]["predicted"], 20) << "every image is a 3";
  EXPECT_EQ(said["report"]["classes"][3]["recall"], 1.0);
}

TEST_F(EvalCommand, AModelOfNumbersHasNoClassesToReport) {
  imported();
  job_.train->model.labels_dtype = DType::kFloat32;
  options_.report = true;
  EXPECT_THAT(refusal(ErrorCode::kBadConfig, [this] { return eval(job_, options_); }),
              HasSubstr("--report counts classes, and this model learns numbers"));
}

TEST_F(EvalCommand, AJobWithoutDataToEvaluateIsRefused) {
  job_.train->data.eval.reset();
  EXPECT_THAT(refusal(ErrorCode::kBadConfig, [this] { return eval(job_, options_); }),
              HasSubstr("add 'eval' beside 'train' in 'data'"));
}

TEST_F(EvalCommand, WithoutACheckpointThereIsNothingToEvaluate) {
  refusal(ErrorCode::kBadData, [this] { return eval(job_, options_); });
}

}  // namespace
}  // namespace dtf::launcher
