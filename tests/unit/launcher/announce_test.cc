#include "launcher/announce.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(placementText({.ps_bytes = {31360, 40}}), "placement: ps/0 30.6 KiB, ps/1 40 B");
  EXPECT_EQ(placementText({.ps_bytes = {7, 5, 9, 8, 6}}), "placement: 5 B to 9 B on each of 5 ps");
}

TEST(Announce, AnEvaluationHasTheNumbersThatThereAre) {
  EXPECT_EQ(evaluationText({.step = 500, .loss = 0.287, .accuracy = 0.92134, .metrics = {}}),
            "evaluation at step 500: accuracy 0.9213, loss 0.287");
  EXPECT_EQ(evaluationText({.step = 7, .loss = {}, .accuracy = {}, .metrics = {{"auc", 0.5}}}),
            "evaluation at step 7: auc 0.5000");
}

}  // namespace
}  // namespace dtf::launcher
