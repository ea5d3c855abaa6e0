// Workers with several devices: a tower on each, one push. Real processes.

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {

namespace {

constexpr const char* kTwoDevices = ", devices: [cpu:0, cpu:1], threads: 2";

class TowersTest : public RecoveryTest {};

ClusterOptions onTwoDevices(ClusterOptions options) {
  options.worker_more = kTwoDevices;
  return options;
}

TEST_F(TowersTest, TwoDevicesOfAWorkerTrainWhatOneDoes) {
  const ClusterOptions options{.workers = 1, .mode = "sync", .steps = 40};
  ASSERT_EQ(launch(writeCluster(options, "one")).exit_code, 0);
  for (const char* name : {"two", "again"})
    ASSERT_EQ(launch(writeCluster(onTwoDevices(options), name)).exit_code, 0);
  EXPECT_EQ(summary("two")["outcome"], "done");
  EXPECT_NEAR(summary("two")["final_loss"].asDouble(), summary("one")["final_loss"].asDouble(),
              1e-5);
  EXPECT_NEAR(summary("two")["eval"]["loss"].asDouble(), summary("one")["eval"]["loss"].asDouble(),
              1e-5);
  EXPECT_EQ(digestOf("two"), digestOf("again"));
}

TEST_F(TowersTest, SyncTrainingEndsWithTheSameBitsWhenSuchAWorkerIsKilled) {
  start(onTwoDevices(syncJob()), "calm");
  awaitEnd();
  start(onTwoDevices(syncJob()), "disturbed");
  killAndStartAgain(1, 200);
  killAndStartAgain(0, 600);
  awaitEnd();
  EXPECT_EQ(summary("disturbed")["global_step"], kSteps);
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

TEST_F(TowersTest, AsyncTrainingLearnsOnThem) {
  ClusterOptions options{.mode = "async", .steps = 600, .examples = 2000};
  ASSERT_EQ(launch(writeCluster(onTwoDevices(options))).exit_code, 0);
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_GT(summary()["eval"]["accuracy"].asDouble(), 0.7);
}

// Each worker uses the devices of its host; they may differ.
TEST_F(TowersTest, WorkersMayHaveOtherDevicesThanTheirPeers) {
  const std::string file = writeCluster({.mode = "sync", .steps = 40});
  const ProcessResult result = launch(
      file, {"--set", "cluster.worker.1={address: \"localhost:auto\", devices: [cpu:0, cpu:1]}"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("devices=cpu:0,cpu:1"), std::string::npos) << result.err;
}

// A run may move to a host with other devices; here also without a ps.
TEST_F(TowersTest, ACheckpointIsGoneOnFromWithOtherDevices) {
  ClusterOptions options{.mode = "sync", .train_more = "  checkpoint: {every_steps: 20}\n"};
  const auto cluster = [](const std::string& devices) {
    return "cluster={worker: [{address: local, devices: " + devices + "}]}";
  };
  const std::string file = writeCluster(options);
  ASSERT_EQ(launch(file, {"--set", cluster("[cpu:0, cpu:1]")}).exit_code, 0);
  const ProcessResult resumed =
      launch(file, {"--set", cluster("[cpu:0]"), "--set", "train.steps=80"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("going on from the checkpoint of step 40"), std::string::npos)
      << resumed.err;
  EXPECT_EQ(summary()["global_step"], 80);
}

TEST_F(TowersTest, CheckAndExplainShowThem) {
  const std::string file = writeCluster(onTwoDevices({}));
  const std::string towers = "2 towers on cpu:0, cpu:1, each of 10 examples with 1 thread\n";
  const ProcessResult check =
      runProcess({binary("dtf-launch"), "check", file}, kEnd, {}, folder_.path());
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_NE(check.out.find("worker/1  localhost:auto: " + towers), std::string::npos) << check.out;
  const ProcessResult explain =
      runProcess({binary("dtf-launch"), "explain", file}, kEnd, {}, folder_.path());
  EXPECT_EQ(explain.exit_code, 0) << explain.err;
  EXPECT_NE(explain.out.find("worker/0: " + towers), std::string::npos) << explain.out;
}

TEST_F(TowersTest, MistakesAreNamedWithTheirLine) {
  ClusterOptions options;
  const auto refusal = [&](const std::string& devices) {
    options.worker_more = ", devices: " + devices;
    const ProcessResult check = runProcess({binary("dtf-launch"), "check", writeCluster(options)},
                                           kEnd, {}, folder_.path());
    EXPECT_EQ(check.exit_code, 78) << check.err;
    return check.err;
  };
  const auto expectWord = [](const std::string& text, const std::string& word) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  expectWord(refusal("[cpu:0, cpu:0]"), "job.yaml:5:");
  expectWord(refusal("[cpu:0, cpu:0]"), "device 'cpu:0' is listed twice");
  expectWord(refusal("[fpga:0]"), "unknown device 'fpga:0': this version has cpu:0 to cpu:63");
  expectWord(refusal("[cpu:0, cpu:1, cpu:2]"),
             "a batch of 20 examples can't be shared out evenly among the 3 devices of worker/0: "
             "choose a batch_size of 18 or 21, or other devices");
  options.batch_size = 1;
  expectWord(refusal("[cpu:0, cpu:1]"), "choose a batch_size of 2, or other devices");
}

// The pixels of the digits, up to 255, are looked up.
TEST_F(TowersTest, WhatNoTowerCouldLookUpIsNamedBeforeTheyStart) {
  ClusterOptions options = onTwoDevices({});
  options.layers = "[embedding: {input_dim: 100, output_dim: 2}, flatten: , dense: {units: 10}]";
  const ProcessResult result = launch(writeCluster(options));
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_NE(result.err.find("but layer 'embedding' has a vocabulary of 100 (0 to 99)"),
            std::string::npos)
      << result.err;
}

}  // namespace

}  // namespace dtf::testing
