#include <gmock/gmock.h>

#include "common/base/error.h"
#include "common/base/json.h"
#include "launcher/commands.h"
#include "launcher/run_facts.h"
#include "tests/unit/launcher/runs_fixture.h"

namespace dtf::launcher {

class CompareCommand : public RunsTest {
 protected:
  CompareCommand() {
    for (const char* name : {"a", "b"}) options_.runs.push_back(ended(name, "job", 20).string());
    folder_.write("a/job.yaml", "job: job\ntrain: {steps: 5, optimizer: {adam: {}}}\n");
    folder_.write("b/job.yaml", "job: job\ntrain: {steps: 7}\n");
  }
  std::string printed() const {
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(compare(options_), 0);
    return ::testing::internal::GetCapturedStdout();
  }

  Options options_;
};

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST_F(CompareCommand, PrintsTheSettingsThatDifferAndTheResults) {
  folder_.write(
      "b/summary.json",
      R"({"outcome": "failed", "global_step": 20, "eval": {"accuracy": 0.5, "recall": 0.25}})");
  const std::string text = printed();
  EXPECT_THAT(text, HasSubstr("A  " + runId(root() / "a") + "  job  " + (root() / "a").string()));
  EXPECT_THAT(text, ContainsRegex("\nsettings +A +B\n"
                                  "  train.optimizer.adam +\\{\\} +-\n"
                                  "  train.steps +5 +7\n"
                                  "results +A +B\n"
                                  "  state +done +failed\n"));
  for (const char* row :
       {"  wall time +1:02 +-\n", "  steps +50 +20\n", "  loss +0.25 +-\n",
        "  eval loss +0.5000 +-\n", "  accuracy +0.7500 +0.5000\n", "  auc +0.8750 +-\n",
        "  recall +- +0.2500\n", "  parameters +006151fa2723f6e2 +-\n"})
    EXPECT_THAT(text, ContainsRegex(row));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("checkpoint"))) << "neither has one";
}

TEST_F(CompareCommand, SettingsMayBeTheSameOrUnknown) {
  folder_.write("a/job.yaml", folder_.read("b/job.yaml"));
  EXPECT_THAT(printed(), HasSubstr("\nsettings: the same\n"));
  std::filesystem::remove(root() / "b/job.yaml");
  EXPECT_THAT(printed(), HasSubstr("settings: not compared, as " + (root() / "b").string() +
                                   "/job.yaml is missing or can't be read\nresults"));
  options_.json = true;
  EXPECT_TRUE(Json::parse(printed())["settings"].isNull());
}

TEST_F(CompareCommand, ForProgramsItIsOneObject) {
  options_.json = true;
  const Json said = Json::parse(printed());
  EXPECT_EQ(said["event"], "compare");
  EXPECT_EQ(said["runs"][1]["run_dir"], (root() / "b").string());
  EXPECT_EQ(said["settings"].dump(), R"([{"key":"train.optimizer.adam","values":["{}",null]},)"
                                     R"({"key":"train.steps","values":["5","7"]}])");
}

TEST_F(CompareCommand, ARunIsNotComparedWithItself) {
  options_.runs[1] = (root() / "b/../a").string();
  EXPECT_THROW(compare(options_), Error);
}

}  // namespace dtf::launcher
