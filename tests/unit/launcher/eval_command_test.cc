#include <gmock/gmock.h>

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
