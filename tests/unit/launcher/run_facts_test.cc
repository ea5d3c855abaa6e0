#include "launcher/run_facts.h"

#include <gmock/gmock.h>

#include "common/base/wall_time.h"
#include "tests/unit/launcher/runs_fixture.h"

namespace dtf::launcher {

using RunFactsTest = RunsTest;

TEST_F(RunFactsTest, OfARunThatEndedAreInItsSummary) {
  const RunFacts run = readRun(ended("a", "digits", 30));
  EXPECT_EQ(run.folder, root() / "a");
  EXPECT_EQ(run.job, "digits");
  EXPECT_EQ(run.state, "done");
  EXPECT_EQ(run.started, wallTimeOf("2026-03-01T10:28:58.500+00:00"));
  EXPECT_EQ(run.seconds, 61.5);
  EXPECT_EQ(run.step, 50u);
  EXPECT_EQ(run.loss, 0.25);
  EXPECT_EQ(metricsText(run), "accuracy 0.7500, auc 0.8750");
  EXPECT_EQ(run.checkpoint, std::nullopt);
  EXPECT_EQ(run.parameters_digest, "006151fa2723f6e2");
  EXPECT_EQ(runJson(run)["eval"].dump(), R"({"loss":0.5,"accuracy":0.75,"auc":0.875})");
  EXPECT_TRUE(runJson(run)["checkpoint_step"].isNull());
}

TEST_F(RunFactsTest, OfALiveRunAreInItsStatus) {
  const std::filesystem::path folder = ended("a", "busy", 30);
  const RunLock lock = running(folder);
  folder_.write("a/status.json",
                R"({"step": 7, "steps": 90, "loss": 0.5, "eval": {"step": 5, "accuracy": 0.25}})");
  const RunFacts run = readRun(folder);
  EXPECT_EQ(run.state, "running");
  EXPECT_TRUE(run.started.has_value());
  EXPECT_TRUE(run.seconds.has_value());
  EXPECT_EQ(run.step, 7u);
  EXPECT_EQ(run.steps, 90u);
  EXPECT_EQ(run.loss, 0.5);
  EXPECT_EQ(metricsText(run), "accuracy 0.2500");
  EXPECT_EQ(run.exit_code, std::nullopt) << "the summary is of the run before";
}

TEST_F(RunFactsTest, ARunWithoutASummaryWasKilledOrIsOfAnotherHost) {
  std::filesystem::create_directories(root() / "killed");
  running(root() / "killed");
  const RunFacts killed = readRun(root() / "killed");
  EXPECT_EQ(killed.state, "killed");
  EXPECT_TRUE(killed.started.has_value());
  std::filesystem::create_directories(root() / "far");
  folder_.write("far/launch.json",
                R"({"launcher_pid": 1, "host": "far", "boot_id": "x", "start_ticks": 1})");
  EXPECT_EQ(readRun(root() / "far").state, "unknown");
  EXPECT_EQ(readRun(root() / "far").job, "far") << "the name of the folder";
}

TEST_F(RunFactsTest, AFolderIsARunWhenSomethingHasRunThere) {
  EXPECT_FALSE(isRun(root() / "empty"));
  EXPECT_TRUE(isRun(ended("a", "digits", 30)));
  EXPECT_FALSE(isRun(root() / "none"));
}

TEST_F(RunFactsTest, AnIdFollowsFromThePath) {
  EXPECT_EQ(runId("/a/b"), runId("/a/./c/../b"));
  EXPECT_NE(runId("/a/b"), runId("/a/c"));
  EXPECT_THAT(runId("/a/b"), ::testing::MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(runId("/a/b").size(), 8u);
}

}  // namespace dtf::launcher
