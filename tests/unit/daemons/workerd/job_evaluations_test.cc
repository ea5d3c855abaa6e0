#include "daemons/workerd/job_evaluations.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_files.h"

namespace dtf::workerd {
namespace {

cluster::JobSpec jobOf(std::optional<cluster::EarlyStoppingSpec> stopping) {
  cluster::JobSpec job;
  job.run_dir = "run";
  std::filesystem::create_directories("run/checkpoints");
  job.train.emplace().checkpoint.emplace();
  job.train->early_stopping = stopping;
  return job;
}

TEST(JobEvaluations, TheEndIsAskedForOnce) {
  const testing::TemporaryFiles files;
  const cluster::JobSpec job = jobOf(cluster::EarlyStoppingSpec{.metric = "loss", .patience = 1});
  int ends = 0;
  JobEvaluations evaluations(job, [&ends] { ++ends; });
  evaluations.goOnFrom({}, true);
  evaluations.add(10, {.loss = 0.5});
  EXPECT_EQ(ends, 0);
  EXPECT_EQ(evaluations.endedEarly(), "");
  evaluations.add(20, {.loss = 0.5});
  evaluations.add(30, {.loss = 0.5});
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(evaluations.endedEarly(), "loss has not improved on 0.5 of step 10 in 1 evaluation");
  evaluations.addLast(31, {.loss = 0.1}, 31);
  EXPECT_EQ(train::readEvaluations("run/checkpoints").back().step, 30u) << "it stays decided";
}

TEST(JobEvaluations, AJobThatAsksForNothingHasNoHistory) {
  const testing::TemporaryFiles files;
  JobEvaluations evaluations(jobOf(std::nullopt), [] { ADD_FAILURE() << "it ends"; });
  evaluations.goOnFrom({}, true);
  evaluations.add(10, {.loss = 0.5});
  evaluations.addLast(20, {.loss = 0.5}, 20);
  EXPECT_TRUE(evaluations.kept().empty());
  EXPECT_FALSE(std::filesystem::exists("run/checkpoints/evaluations.json"));
}

}  // namespace
}  // namespace dtf::workerd
