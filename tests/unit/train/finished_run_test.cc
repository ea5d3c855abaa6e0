#include "common/train/finished_run.h"

#include <gtest/gtest.h>

#include "common/train/checkpointer.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/train/fake_ps.h"

namespace dtf::train {
namespace {

class FinishedRunTest : public ::testing::Test {
 protected:
  FinishedRunTest() {
    disk_.makeFolder(kRunDir);
    disk_.syncFolder("/");
    job_.job = "test";
    job_.run_dir = kRunDir;
    job_.cluster.worker.resize(1);
    job_.train.emplace().checkpoint.emplace();
    job_.train->steps = 40;
  }

  void save(uint64_t step) {
    CheckpointerOptions options;
    options.job = "test";
    options.run_dir = kRunDir;
    options.incarnation = Incarnation{1};
    options.spec.emplace();
    options.epochs = epochs_;
    Checkpointer checkpointer(disk_, clock_, ps_,
                              oneVariable(cluster::ReplicationSpec::Mode::kSync, 40), options);
    ps_.setPosition({step});
    checkpointer.save(Motion::kAtRest);
  }

  ManualClock clock_;
  testing::SimulatedDisk disk_;
  FakePs ps_{disk_, clock_};
  cluster::JobSpec job_;
  uint64_t epochs_ = 0;
};

TEST_F(FinishedRunTest, AJobIsDoneWhenItsNewestCheckpointHasAllSteps) {
  EXPECT_FALSE(findFinishedRun(disk_, job_)) << "there is none";
  save(30);
  EXPECT_FALSE(findFinishedRun(disk_, job_));
  save(40);
  const std::optional<FinishedRun> run = findFinishedRun(disk_, job_);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->step, 40u);
  EXPECT_EQ(finishedText(job_, {40, "noon", "", true}),
            "done already at step 40 (noon): nothing to do; --fresh begins anew, --set "
            "train.steps=80 goes on");
  EXPECT_EQ(finishedText(job_, {60, "noon", "", true}),
            "done already at step 60, beyond the 40 of this file (noon): nothing to do; --fresh "
            "begins anew, --set train.steps=120 goes on");
  job_.launch.via = cluster::LaunchSpec::Via::kSystemd;
  EXPECT_EQ(finishedText(job_, {40, "noon", "", true}),
            "done already at step 40 (noon): nothing to do; another --run-dir begins anew, --set "
            "train.steps=80 goes on")
      << "units refuse --fresh";
  job_.train->steps = 80;
  EXPECT_FALSE(findFinishedRun(disk_, job_));
}

TEST_F(FinishedRunTest, AnotherJobsOrModelsCheckpointIsTheTasksAffair) {
  save(40);
  job_.job = "other";
  EXPECT_FALSE(findFinishedRun(disk_, job_));
  job_.job = "test";
  job_.train->model.accuracy = true;
  job_.train->model.input_shape = {3};
  EXPECT_FALSE(findFinishedRun(disk_, job_));
}

TEST_F(FinishedRunTest, EpochsAreAsManyStepsAsTheyWere) {
  epochs_ = 2;
  save(40);
  job_.train->epochs = 2;
  EXPECT_TRUE(findFinishedRun(disk_, job_));
  job_.train->epochs = 3;
  EXPECT_FALSE(findFinishedRun(disk_, job_));
  EXPECT_EQ(finishedText(job_, {40, "noon", "", true}),
            "done already at step 40 (noon): nothing to do; --fresh begins anew, --set "
            "train.epochs=6 goes on");
}

}  // namespace
}  // namespace dtf::train
