#include "launcher/model_copy.h"

#include <gtest/gtest.h>

namespace dtf::launcher {

using Via = cluster::LaunchSpec::Via;

TEST(ModelCopy, ComesOfJobsOnOtherHostsThatHaveEndedWell) {
  cluster::LaunchSpec launch;
  launch.via = Via::kSsh;
  EXPECT_TRUE(wantsModel(launch, "done"));
  EXPECT_TRUE(wantsModel(launch, "stopped"));
  EXPECT_FALSE(wantsModel(launch, "failed"));
  EXPECT_FALSE(wantsModel(launch, "interrupted"));
  launch.fetch_model = false;
  EXPECT_FALSE(wantsModel(launch, "done"));
  launch = {};
  EXPECT_FALSE(wantsModel(launch, "done")) << "it is on this host";
}

TEST(ModelCopy, DoesNotHoldUpAJobThatSlurmWantsToBeGone) {
  cluster::LaunchSpec launch;
  launch.via = Via::kSlurm;
  EXPECT_TRUE(wantsModel(launch, "done"));
  EXPECT_FALSE(wantsModel(launch, "stopped"));
}

TEST(ModelCopy, WhatIsNotHereIsSaidToBeThere) {
  cluster::JobSpec job;
  job.run_dir = "/r/../runs/x";
  job.launch.via = Via::kSsh;
  job.cluster.worker.resize(1);
  job.cluster.worker[0].address = {"node1", 0};
  const Error error(ErrorCode::kCannotWrite, "the disk is full");
  EXPECT_EQ(noModelText(job, "done", 120, error),
            "warning: the model was not copied here: the disk is full\n"
            "  it is on node1, in /runs/x/checkpoints/step-120\n"
            "  the same command once more copies it, and trains nothing; fetch_model: false in "
            "'launch' leaves it there");
  EXPECT_NE(noModelText(job, "stopped", 120, error)
                .find("the same command once more trains on from it, and copies the model at its "
                      "end; fetch_model: "),
            std::string::npos);
  job.train.emplace();
  job.train->checkpoint.emplace().stay = true;
  EXPECT_NE(noModelText(job, "done", 120, error).find("step-120, and its shards are with the ps\n"),
            std::string::npos);
}

}  // namespace dtf::launcher
