#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/launcher/given_input.h"
#include "tests/unit/launcher/trained_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class PredictCommand : public TrainedTest {};

TEST_F(PredictCommand, EachExampleOfTheEvaluationHasALine) {
  imported();
  options_.output = folder_.path() + "/p.csv";
  EXPECT_EQ(printed([this] { return predict(job_, options_); }),
            "tiny: step 0: 20 predictions in " + options_.output->string() + "\n");
  const std::string csv = folder_.read("p.csv");
  EXPECT_EQ(std::ranges::count(csv, '\n'), 21) << "and a header:\n" << csv;
}

TEST_F(PredictCommand, WithoutAFileTheyArePrinted) {
  imported();
  const std::string text = printed([this] { return predict(job_, options_); });
  EXPECT_EQ(code_, 0);
  EXPECT_GE(std::ranges::count(text, '\n'), 20);
}

TEST_F(PredictCommand, AnEndingThatIsNoFormatIsRefusedBeforeAnythingIsRead) {
  options_.output = folder_.path() + "/p.xls";
  EXPECT_THAT(refusal(ErrorCode::kUsage, [this] { return predict(job_, options_); }),
              HasSubstr("p.xls"));
}

TEST_F(PredictCommand, AnInputOfAnotherShapeIsNamedBeforeTheJobsFile) {
  imported();
  const std::string input =
      folder_.write("narrow", std::string("\0\0\x08\x03\0\0\0\x01\0\0\0\x1c\0\0\0\x0e", 16) +
                                  std::string(392, 'x'));
  options_.input = input;
  EXPECT_THAT(
      refusal(ErrorCode::kBadConfig, [this] { return predict(job_, options_); }),
      MatchesRegex(input + ": the model reads examples of shape \\[28, 28, 1\\], but got "
                           "\\[28, 14\\] from it: use .*\n  the job: .*job.yaml:[0-9]+:[0-9]+"));
}

TEST_F(PredictCommand, ColumnsAreKeptOfATable) {
  imported();
  options_.keep = {"id"};
  EXPECT_THAT(refusal(ErrorCode::kUsage, [this] { return predict(job_, options_); }),
              HasSubstr("the job's evaluation data are none: name a table with --input"));
}

TEST_F(PredictCommand, StandardInputIsReadAsAFile) {
  imported();
  const GivenInput given(std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x1c\0\0\0\x1c", 16) +
                         std::string(2 * 784, 'x'));
  options_.input = "-";
  const std::string text = printed([this] { return predict(job_, options_); });
  EXPECT_EQ(code_, 0);
  EXPECT_THAT(text, HasSubstr("\n1\t3\t")) << "each image is a 3";
}

TEST_F(PredictCommand, AnEmptyStandardInputIsNamed) {
  imported();
  const GivenInput given("");
  options_.input = "-";
  EXPECT_THAT(refusal(ErrorCode::kBadData, [this] { return predict(job_, options_); }),
              HasSubstr("/dev/stdin: "));
}

TEST_F(PredictCommand, ExamplesMustComeFromSomewhere) {
  imported();
  job_.train->data.eval.reset();
  EXPECT_THAT(refusal(ErrorCode::kBadConfig, [this] { return predict(job_, options_); }),
              HasSubstr("name a file with --input"));
}

}  // namespace
}  // namespace dtf::launcher
