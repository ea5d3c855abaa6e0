// A job whose run directory changes: it is removed, belongs to another user, or its disk is full.

#include <signal.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;
using std::chrono::seconds;

class RunFolderTest : public ClusterTest {
 protected:
  static ClusterOptions savingJob(int steps) {
    ClusterOptions options{.mode = "sync", .steps = steps};
    options.train_more = "  checkpoint: {every_steps: 100, keep: 3}\n";
    return options;
  }
  fs::path run() const { return fs::path(folder_.path()) / "runs" / "job"; }

  // Runs as this user, without root's right to read everything.
  static std::vector<std::string> asSomebody(std::vector<std::string> argv) {
    if (::geteuid() == 0)
      argv.insert(argv.begin(), {"setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"});
    return argv;
  }
  ProcessResult runAsSomebody(std::vector<std::string> argv) const {
    return runProcess(asSomebody(std::move(argv)), seconds(60), {}, folder_.path());
  }
};

TEST_F(RunFolderTest, OneThatIsRemovedIsMadeAnewForTheNextCheckpoint) {
  const std::string file = writeCluster(savingJob(100'000'000));
  Process launcher(launchCommand(file), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("event=checkpoint step=", seconds(30))) << launcher.err();
  fs::rename(run(), run().string() + ".gone");
  ASSERT_TRUE(launcher.waitForOutput("event=checkpoints_gone", seconds(30))) << launcher.err();
  launcher.signal(SIGINT);
  const ProcessResult stopped = launcher.wait(seconds(30));
  EXPECT_EQ(stopped.exit_code, 128 + SIGINT) << stopped.err;
  EXPECT_NE(stopped.out.find("; the same command goes on from it"), std::string::npos)
      << stopped.out;
  EXPECT_NE(stopped.out.find("logs       not there: "), std::string::npos) << stopped.out;
  // The command does go on from that step.
  const std::string reached = std::to_string(summary()["global_step"].asUint64());
  Process again(launchCommand(file), {}, folder_.path());
  EXPECT_TRUE(again.waitForOutput("going on from the checkpoint of step " + reached, seconds(30)))
      << again.err();
  again.signal(SIGINT);
  again.wait(seconds(30));
}

TEST_F(RunFolderTest, OneThatIsRemovedAtTheEndIsPromisedToNobody) {
  ClusterOptions job = savingJob(100'000'000);
  job.train_more = "  checkpoint: {every_steps: 100000000}\n";
  Process launcher(launchCommand(writeCluster(job)),
                   {{"DTF_FAILPOINTS", "checkpoint.after_parent_sync=sleep:3000"}}, folder_.path());
  // At step 0 there is a checkpoint in any case.
  ASSERT_TRUE(launcher.waitForOutput("| loss", seconds(30))) << launcher.err();
  launcher.signal(SIGINT);
  // The last checkpoint is on the disk; the launcher does not know it yet.
  const auto isSaved = [&] {
    std::error_code not_yet;
    for (const auto& entry : fs::directory_iterator(run() / "checkpoints", not_yet))
      if (entry.path().filename() != "step-0" && entry.path().extension().empty()) return true;
    return false;
  };
  const auto deadline = std::chrono::steady_clock::now() + Process::kSlowest * seconds(30);
  while (!isSaved() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  ASSERT_TRUE(isSaved());
  fs::rename(run(), run().string() + ".gone");
  const ProcessResult stopped = launcher.wait(seconds(30));
  EXPECT_NE(stopped.out.find(", not there: "), std::string::npos) << stopped.out;
  EXPECT_EQ(stopped.out.find("goes on from it"), std::string::npos) << stopped.out;
}

TEST_F(RunFolderTest, ACheckpointThatThisUserMayNotReadIsNotPassedOver) {
  const std::string file = writeCluster(savingJob(300));
  ASSERT_EQ(launch(file).exit_code, 0);
  const fs::path newest = run() / "checkpoints" / "step-300";
  const std::vector<std::string> longer = {"--set", "train.steps=400"};
  std::vector<std::string> argv = launchCommand(file);
  argv.insert(argv.end(), longer.begin(), longer.end());
  const fs::path shard = newest / "shard-1-of-2.safetensors";
  fs::permissions(shard, fs::perms::none);
  const ProcessResult refused = runAsSomebody(argv);
  EXPECT_EQ(refused.exit_code, 77) << refused.err;
  EXPECT_NE(refused.err.find(shard.string()), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("give this user read permission, or move the checkpoint away"),
            std::string::npos)
      << refused.err;
  EXPECT_TRUE(fs::exists(newest)) << "nobody removes it";
  const ProcessResult evaluated = runAsSomebody({binary("dtf-launch"), "eval", file});
  EXPECT_EQ(evaluated.exit_code, 77) << evaluated.err;

  fs::permissions(shard, fs::perms::owner_read | fs::perms::owner_write);
  const ProcessResult readable = runAsSomebody(argv);
  EXPECT_EQ(readable.exit_code, 0) << readable.err;
  EXPECT_NE(readable.err.find("going on from the checkpoint of step 300"), std::string::npos)
      << readable.err;
}

// No other process could read the file either, so no task waits for one.
TEST_F(RunFolderTest, ByHandACheckpointThatMayNotBeReadEndsTheJobForAll) {
  ClusterOptions job = savingJob(300);
  job.ps = 1;
  job.ports = freePorts(3);
  const std::string file = writeCluster(job);
  ASSERT_EQ(launch(file).exit_code, 0);
  fs::permissions(run() / "checkpoints" / "step-300" / "manifest.json", fs::perms::none);
  const auto start = [&](const std::string& daemon, const std::string& task) {
    return Process(
        asSomebody({binary(daemon), "--cluster", file, "--task", task, "--set", "train.steps=400"}),
        {}, folder_.path());
  };
  Process ps = start("psd", "0"), other = start("workerd", "1"), chief = start("workerd", "0");
  EXPECT_EQ(chief.wait(seconds(30)).exit_code, 77);
  for (Process* process : {&ps, &other}) {
    const ProcessResult ended = process->wait(seconds(20));
    EXPECT_NE(ended.exit_code, 0);
    EXPECT_NE(ended.err.find("manifest.json"), std::string::npos) << ended.err;
  }
}

// `ulimit -f`: without more ado the kernel ends a process that writes beyond it. The calls that
// tests log lie in a larger file.
TEST_F(RunFolderTest, AFileThatMayNotGrowIsNamed) {
  std::vector<std::string> argv = launchCommand(writeCluster(savingJob(300)),
                                                {"--set", "train.placement.strategy=round_robin"});
  argv.insert(argv.begin(), {"env", "-u", "DTF_CALL_LOG", "prlimit", "--fsize=20000", "--"});
  const ProcessResult result = runProcess(argv, seconds(60), {}, folder_.path());
  EXPECT_EQ(result.exit_code, 73) << result.err;
  EXPECT_NE(result.err.find("File too large"), std::string::npos) << result.err;
  const std::string file = writeCluster(savingJob(100), "small");
  ASSERT_EQ(launch(file).exit_code, 0);
  const std::string to = folder_.path() + "/model.npz";
  const ProcessResult exported = runProcess(
      {"prlimit", "--fsize=2000", "--", binary("dtf-launch"), "export", file, "--to", to},
      seconds(60), {}, folder_.path());
  EXPECT_EQ(exported.exit_code, 73) << exported.err;
  EXPECT_NE(exported.err.find(to), std::string::npos) << exported.err;
}

}  // namespace dtf::testing
