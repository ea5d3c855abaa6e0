#include <gmock/gmock.h>

#include "common/base/json.h"
#include "launcher/commands.h"
#include "tests/unit/launcher/runs_fixture.h"

namespace dtf::launcher {

class RunsCommand : public RunsTest {
 protected:
  std::string printed(bool json = false) const {
    Options options;
    options.runs = {root().string()};
    options.json = json;
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(runs(options), 0);
    return ::testing::internal::GetCapturedStdout();
  }
};

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(RunsCommand, PrintsALineForEachRunNewestFirst) {
  ended("a", "digits", 20);
  ended("b", "table", 30, "failed");
  const std::string text = printed();
  EXPECT_THAT(text, StartsWith("ID        JOB     STATE   STARTED           TIME  STEPS  LOSS  "
                               "METRICS                      CHECKPOINT  FOLDER\n"));
  EXPECT_THAT(text, ContainsRegex("\n[0-9a-f]+  table   failed  2026-0[0-9: -]+  1:02  50     0.25"
                                  "  accuracy 0.7500, auc 0.8750  -           /[^\n]*/b\n"));
  EXPECT_LT(text.find("table"), text.find("digits"));
}

TEST_F(RunsCommand, WithoutRunsSaysHowToMakeOne) {
  EXPECT_THAT(printed(), StartsWith("no runs: "));
  EXPECT_EQ(printed(true), "");
}

TEST_F(RunsCommand, ForPeopleItIsBoundedAndForProgramsItIsNot) {
  for (int i = 0; i < 52; ++i) ended("r" + std::to_string(i), "job", 20);
  const std::string text = printed(), json = printed(true);
  EXPECT_THAT(text, HasSubstr("\n2 runs older: dtf-launch runs --json prints all\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 52);
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), 52);
  const Json first = Json::parse(json.substr(0, json.find('\n')));
  EXPECT_EQ(first["event"], "run");
  EXPECT_EQ(first["state"], "done");
  EXPECT_EQ(first["global_step"], 50);
}

}  // namespace dtf::launcher
