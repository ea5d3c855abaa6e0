#include "launcher/announce.h"

#include <gtest/gtest.h>

#include "common/base/text.h"

namespace dtf::launcher {
namespace {

cluster::JobSpec jobOf(size_t ps, size_t workers) {
  cluster::JobSpec job;
  job.job = "digits";
  job.cluster.ps.resize(ps);
  job.cluster.worker.resize(workers);
  return job;
}

TEST(Announce, AStartCountsTheTasks) {
  EXPECT_EQ(startText(jobOf(2, 3), "runs/digits/logs"),
            "digits: 2 ps, 3 workers; logs in runs/digits/logs");
  EXPECT_EQ(startText(jobOf(1, 1), "logs"), "digits: 1 ps, 1 worker; logs in logs");
  EXPECT_EQ(startText(jobOf(0, 1), "logs"), "digits: one process, no ps; logs in logs");
}

TEST(Announce, OneTaskIsReadyAsOne) {
  EXPECT_EQ(readyText(4, 0.21), "all 4 tasks are ready (0.2 s)");
  EXPECT_EQ(readyText(1, 0.21), "the task is ready (0.2 s)");
}

TEST(Announce, AStartNamesTheAddressOfTheMetrics) {
  cluster::JobSpec job = jobOf(1, 2);
  for (auto* tasks : {&job.cluster.ps, &job.cluster.worker})
    for (cluster::TaskSpec& task : *tasks) task.address = {"localhost", 2221};
  job.metrics.emplace().port = 9400;
  EXPECT_EQ(startText(job, "logs"),
            "digits: 1 ps, 2 workers; logs in logs; metrics of worker/0 at http://localhost:9401");
  job.cluster.keys = "keys";
  EXPECT_TRUE(startText(job, "logs").ends_with(" at https://localhost:9401"));
  job.metrics->port = 0;
  EXPECT_TRUE(startText(job, "logs")
                  .ends_with("; metrics at ports that event=metrics in the logs "
                             "names"));
}

TEST(Announce, OfManyTargetsTheFirstAreNamed) {
  std::vector<std::string> targets = {"dtf://a:1", "dtf://b:2"};
  EXPECT_EQ(servingText(targets), "serving clients on dtf://a:1, dtf://b:2");
  targets.resize(10, "dtf://c:3");
  const std::string text = servingText(targets);
  EXPECT_TRUE(text.ends_with("dtf://c:3, and 2 others")) << text;
}

TEST(Announce, AModelIsCountedAndSaysHowItIsTrained) {
  cluster::JobSpec job = jobOf(2, 2);
  const ModelNotice model{.variables = 2, .parameters = 7850, .ps_bytes = {31360, 40}};
  EXPECT_EQ(modelText(model, job), "model: 2 variables, 7850 parameters (30.7 KiB)")
      << "of a job whose training is not known";
  job.train.emplace();
  job.train->steps = 2000;
  EXPECT_EQ(modelText(model, job),
            "model: 2 variables, 7850 parameters (30.7 KiB); gradient_descent, async, 2000 steps");
  job.train->epochs = 1;
  EXPECT_TRUE(modelText({.variables = 1, .parameters = 1, .ps_bytes = {4}}, job)
                  .starts_with("model: 1 variable, 1 parameter (4 B); "));
  EXPECT_TRUE(modelText(model, job).ends_with(", 1 epoch"));
}

TEST(Announce, OfManyPsTheLeastAndTheMostAreNamed) {
  cluster::JobSpec job;
  job.cluster.ps.resize(5);
  job.cluster.worker.resize(5);
  EXPECT_EQ(placementText({.ps_bytes = {31360, 40}}, job), "placement: ps/0 30.6 KiB, ps/1 40 B");
  EXPECT_EQ(placementText({.ps_bytes = {7, 5, 9, 8, 6}}, job),
            "placement: 5 B to 9 B on each of 5 ps");
  job.cluster.ps.clear();
  EXPECT_EQ(placementText({.ps_bytes = {31360, 40}}, job),
            "placement: worker/0 30.6 KiB, worker/1 40 B");
  EXPECT_EQ(placementText({.ps_bytes = {7, 5, 9, 8, 6}}, job),
            "placement: 5 B to 9 B on each of 5 workers");
}

TEST(Announce, RecordsThatAreLeftOutAreNamedUpToAFew) {
  EXPECT_EQ(leftOutText({.records = 1, .reasons = {"t.csv:3:5: \x1b[31m"}}),
            "left out: 1 record that can't be read\n  t.csv:3:5: " + printable("\x1b[31m"));
  EXPECT_EQ(leftOutText({.records = 12, .reasons = {"a", "b"}}),
            "left out: 12 records that can't be read\n  a\n  b\n  and 10 more");
}

TEST(Announce, AnEvaluationHasTheNumbersThatThereAre) {
  EXPECT_EQ(evaluationText({.step = 500, .loss = 0.287, .accuracy = 0.92134, .metrics = {}}),
            "evaluation at step 500: accuracy 0.9213, loss 0.287");
  EXPECT_EQ(evaluationText({.step = 7, .loss = {}, .accuracy = {}, .metrics = {{"auc", 0.5}}}),
            "evaluation at step 7: auc 0.5000");
}

TEST(Announce, AStopSaysWhetherTheJobIsSaved) {
  cluster::JobSpec job;
  job.train.emplace().checkpoint.emplace();
  EXPECT_EQ(stoppingText(job, true),
            ": saving a checkpoint and stopping; once more: at once, unsaved");
  EXPECT_EQ(stoppingText(job, false), ": stopping the tasks; once more: at once");
  job.train->checkpoint.reset();
  EXPECT_EQ(stoppingText(job, false),
            ": stopping the tasks, nothing is saved ('checkpoint: none'); once more: at once");
}

}  // namespace
}  // namespace dtf::launcher
