#include "launcher/model_copy.h"

#include <gtest/gtest.h>

namespace dtf::launcher {

using Via = cluster::LaunchSpec::Via;

TEST(ModelCopy, ComesOfJobsOnOtherHostsThatHaveEndedWell) {
  cluster::LaunchSpec launch;
  launch.via = Via::kSsh;
  EXPECT_TRUE(wantsModel(launch, Outcome::kDone));
  EXPECT_TRUE(wantsModel(launch, Outcome::kStopped));
  EXPECT_FALSE(wantsModel(launch, Outcome::kFailed));
  EXPECT_FALSE(wantsModel(launch, Outcome::kInterrupted));
  launch.fetch_model = false;
  EXPECT_FALSE(wantsModel(launch, Outcome::kDone));
  launch = {};
  EXPECT_FALSE(wantsModel(launch, Outcome::kDone)) << "it is on this host";
}

TEST(ModelCopy, DoesNotHoldUpAJobThatSlurmWantsToBeGone) {
  cluster::LaunchSpec launch;
  launch.via = Via::kSlurm;
  EXPECT_TRUE(wantsModel(launch, Outcome::kDone));
  EXPECT_FALSE(wantsModel(launch, Outcome::kStopped));
}

TEST(ModelCopy, WhatIsNotHereIsSaidToBeThere) {
  cluster::JobSpec job;
  job.run_dir = "/r/../runs/x";
  job.launch.via = Via::kSsh;
  job.cluster.worker.resize(1);
  job.cluster.worker[0].address = {"node1", 0};
  const Error error(ErrorCode::kCannotWrite, "the disk is full");
  EXPECT_EQ(noModelText(job, 120, error),
            "warning: the model is not here: the disk is full\n"
            "  it is on node1, in /runs/x/checkpoints/step-120\n"
            "  the same command once more brings it, and trains nothing; fetch_model: false in "
            "'launch' leaves it there");
  job.train.emplace();
  job.train->checkpoint.emplace().stay = true;
  EXPECT_NE(noModelText(job, 120, error).find("step-120, and its shards are with the ps\n"),
            std::string::npos);
}

}  // namespace dtf::launcher
