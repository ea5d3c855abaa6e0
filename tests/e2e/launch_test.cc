// dtf-launch with real processes: files and processes left by a job that ends well, with an error,
// or by force.

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

class LaunchTest : public ClusterTest {};

// A group of processes that has no more than so much memory; of cgroups v1 or v2, made by root.
class MemoryGroup {
 public:
  explicit MemoryGroup(uint64_t bytes) {
    const std::filesystem::path root = "/sys/fs/cgroup";
    const std::string name = "dtf-test-" + std::to_string(::getpid());
    std::error_code refused;
    for (const auto& [folder, limit] : {std::pair(root / "memory" / name, "memory.limit_in_bytes"),
                                        std::pair(root / name, "memory.max")}) {
      if (!std::filesystem::create_directory(folder, refused)) continue;
      folder_ = folder;
      std::ofstream file(folder / limit);
      if (file << bytes << std::flush) {
        // Nor may they swap.
        std::ofstream(folder / "memory.swap.max") << 0;
        std::ofstream(folder / "memory.memsw.limit_in_bytes") << bytes;
        return;
      }
      std::filesystem::remove(folder, refused);
      folder_.clear();
    }
  }
  ~MemoryGroup() {
    std::error_code refused;
    if (exists()) std::filesystem::remove(folder_, refused);
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  bool exists() const { return !folder_.empty(); }
  // A script that is `program`, in the group from its start.
  std::string within(const std::string& program) const {
    return "#!/bin/sh\necho $$ > " + (folder_ / "cgroup.procs").string() + " && exec " + program +
           " \"$@\"\n";
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(LaunchTest, AsyncJobEndsWithExactlyItsStepsAndASummary) {
  const ProcessResult result = launch(writeCluster({.steps = 60, .ports = freePorts(4)}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json s = summary();
  EXPECT_EQ(s["schema"], 1);
  EXPECT_EQ(s["job"], "job");
  EXPECT_EQ(s["outcome"], "done");
  EXPECT_EQ(s["global_step"], 60);
  EXPECT_GT(s["final_loss"].asDouble(), 0.0);
  EXPECT_GT(s["eval"]["accuracy"].asDouble(), 0.2);
  EXPECT_GT(s["steps_per_second"].asDouble(), 0.0);
  EXPECT_GT(s["examples_per_second"].asDouble(), 0.0);
  EXPECT_GT(s["wall_seconds"].asDouble(), 0.0);
  ASSERT_EQ(s["tasks"].size(), 4u);
  for (const auto& task : s["tasks"]) {
    EXPECT_EQ(task["exit_code"], 0) << task;
    EXPECT_EQ(task["restarts"], 0) << task;
  }
  EXPECT_NE(result.out.find("accuracy"), std::string::npos) << result.out;
  expectNothingLeft();
  for (const char* log : {"ps-0.1.log", "ps-1.1.log", "worker-0.1.log", "worker-1.1.log"})
    EXPECT_FALSE(folder_.read(std::string("runs/job/logs/") + log).empty()) << log;
}

TEST_F(LaunchTest, SyncJobEndsWithExactlyItsSteps) {
  const ProcessResult result = launch(writeCluster({.mode = "sync", .steps = 60}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["global_step"], 60);
  EXPECT_EQ(summary()["outcome"], "done");
}

TEST_F(LaunchTest, SyncWithBackupWorkersAndWithSeveralBatchesPerWorker) {
  for (const char* more : {", replicas_to_aggregate: 2", ", replicas_to_aggregate: 5"}) {
    const ProcessResult result =
        launch(writeCluster({.workers = 3, .mode = "sync", .steps = 30, .replication_more = more}));
    ASSERT_EQ(result.exit_code, 0) << more << result.err;
    EXPECT_EQ(summary()["global_step"], 30);
  }
}

TEST_F(LaunchTest, PrintsThePlacementTable) {
  const ProcessResult result = launch(writeCluster({}));
  EXPECT_NE(result.err.find("softmax/weights"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("/job:ps/task:1"), std::string::npos) << result.err;
}

// Both variables, which would be dealt to both ps.
TEST_F(LaunchTest, PinnedVariablesLieOnThePsTheyArePinnedTo) {
  const ProcessResult result =
      launch(writeCluster({.train_more = "  checkpoint: {every_steps: 40}\n  placement: {pins: "
                                         "{softmax/weights: /job:ps/task:1, softmax/biases: "
                                         "/job:ps/task:1}}\n"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto manifest = Json::parse(folder_.read("runs/job/checkpoints/step-40/manifest.json"));
  for (const auto& shard : manifest["shards"]) {
    const bool is_pinned_to = shard["file"] == "shard-1-of-2.safetensors";
    EXPECT_EQ(shard["tensors"].size(), is_pinned_to ? 2u : 0u) << shard;
  }
}

TEST_F(LaunchTest, LogLinesCarryTheirTask) {
  const ProcessResult result = launch(writeCluster({}));
  EXPECT_NE(result.err.find("worker/1 |"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("\x1b["), std::string::npos) << "no colours where there is no terminal";
}

TEST_F(LaunchTest, AKilledWorkerIsTheRootCauseAndEverybodyLeaves) {
  Process launcher(launchCommand(writeCluster({.mode = "sync",
                                               .steps = 100000000,
                                               .top_more = "launch: {restarts: {max: 0}}\n",
                                               .ports = freePorts(4)})),
                   {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("step", seconds(20))) << launcher.err();
  std::string victim;
  for (const std::string& process : leftovers())
    if (process.find("workerd") != std::string::npos) victim = process;
  ASSERT_FALSE(victim.empty());
  ::kill(std::stoi(victim), SIGKILL);
  const ProcessResult result = launcher.wait(seconds(10));
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_NE(result.err.find("SIGKILL"), std::string::npos) << result.err;
  EXPECT_EQ(summary()["outcome"], "failed");
  expectNothingLeft();
}

// Two workers with 94 MB of pixels each. dtf-launch is not in the group: it would count the memory
// and refuse the job.
TEST_F(LaunchTest, AWorkerThatTheKernelKilledForLackOfMemoryIsSaidToBe) {
  const MemoryGroup group(150 << 20);
  if (!group.exists()) GTEST_SKIP() << "no memory cgroup can be made: that needs root";
  const std::string file =
      writeCluster({.ps = 1, .steps = 100000000, .examples = 120000, .ports = freePorts(3)});
  for (const char* program : {"psd", "workerd"})
    std::filesystem::permissions(folder_.write(program, group.within(binary(program))),
                                 std::filesystem::perms::owner_all);
  Process launcher(launchCommand(file, {"--bin-dir", folder_.path()}), {}, folder_.path());
  const ProcessResult result = launcher.wait(seconds(60));
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_NE(result.err.find("was killed by SIGKILL (signal 9), probably by the kernel, for lack of "
                            "memory: see dmesg"),
            std::string::npos)
      << result.err;
  expectNothingLeft();
}

TEST_F(LaunchTest, CtrlCStopsEverybodyAndSaysInterrupted) {
  Process launcher(launchCommand(writeCluster({.steps = 100000000, .ports = freePorts(4)})), {},
                   folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("step", seconds(20))) << launcher.err();
  launcher.signal(SIGINT);
  const ProcessResult result = launcher.wait(seconds(5));
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_EQ(result.err.find("event=worker_lost"), std::string::npos)
      << "who was told to stop is not missed\n"
      << result.err;
  EXPECT_EQ(summary()["outcome"], "interrupted");
  expectNothingLeft();
}

TEST_F(LaunchTest, MetricsWithoutDataToEvaluateAreAWarningOnce) {
  const std::string file = writeCluster({});
  std::string text = folder_.read("job.yaml");
  const size_t eval = text.find("    eval: {");
  ASSERT_NE(eval, std::string::npos) << text;
  folder_.write("job.yaml", text.erase(eval, text.find('\n', eval) + 1 - eval));
  const ProcessResult result = launch(file);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("'metrics' are computed on data.eval"), std::string::npos)
      << result.err;
  EXPECT_EQ(result.err.find("warning event=nothing_to_evaluate"), std::string::npos) << result.err;
}

// The lock goes with the file: one warning names the removed directory.
TEST_F(LaunchTest, ARunDirectoryThatIsRemovedIsNamed) {
  Process launcher(launchCommand(writeCluster({.steps = 100000000})), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("step", seconds(20))) << launcher.err();
  const std::string run = folder_.path() + "/runs/job";
  std::filesystem::rename(run, run + ".gone");  // whole, whatever is being written there
  EXPECT_TRUE(launcher.waitForOutput(
      "warning: the run directory " + folder_.path() + "/runs/job was removed or replaced",
      seconds(10)))
      << launcher.err();
  launcher.signal(SIGINT);
  const ProcessResult result = launcher.wait(seconds(10));
  EXPECT_EQ(result.exit_code, 130) << result.err;
  const size_t first = result.err.find("was removed or replaced");
  EXPECT_EQ(result.err.find("was removed or replaced", first + 1), std::string::npos) << result.err;
}

TEST_F(LaunchTest, CtrlCTwiceEndsAtOnceEvenWithAFrozenTask) {
  Process launcher(launchCommand(writeCluster({.steps = 100000000, .ports = freePorts(4)})), {},
                   folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("step", seconds(20))) << launcher.err();
  for (const std::string& process : leftovers())
    if (process.find("psd") != std::string::npos) ::kill(std::stoi(process), SIGSTOP);
  launcher.signal(SIGINT);
  launcher.signal(SIGINT);
  EXPECT_EQ(launcher.wait(seconds(5)).exit_code, 130);
  expectNobodyLeft();
}

TEST_F(LaunchTest, AKilledLauncherLeavesNobody) {
  Process launcher(launchCommand(writeCluster({.steps = 100000000, .ports = freePorts(4)})), {},
                   folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("step", seconds(20))) << launcher.err();
  EXPECT_GE(leftovers().size(), 5u);
  launcher.signal(SIGKILL);
  launcher.wait(seconds(5));
  expectNothingLeft();
}

TEST_F(LaunchTest, TwentyLaunchesSideBySideWithAutomaticPortsDoNotClash) {
  std::vector<Process> launchers;
  for (int i = 0; i < 20; ++i)
    launchers.emplace_back(launchCommand(writeCluster({.steps = 20}, "job" + std::to_string(i))),
                           std::map<std::string, std::string>{}, folder_.path());
  for (size_t i = 0; i < launchers.size(); ++i) {
    const ProcessResult result = launchers[i].wait(seconds(120));
    EXPECT_EQ(result.exit_code, 0) << "launch " << i << "\n" << result.err;
  }
  expectNothingLeft();
}

// 200, or as many as DTF_LAUNCHES says.
TEST_F(LaunchTest, HundredsOfLaunchesInARowAllSucceed) {
  const char* wanted = std::getenv("DTF_LAUNCHES");
  const int count = wanted == nullptr ? 200 : std::stoi(wanted);
  const std::string file = writeCluster({.steps = 5, .examples = 100, .eval_examples = 50});
  for (int i = 0; i < count; ++i) {
    const ProcessResult result = launch(file);
    ASSERT_EQ(result.exit_code, 0) << "launch " << i << "\n" << result.err;
    ASSERT_EQ(summary()["global_step"], 5);
  }
  expectNothingLeft();
}

TEST_F(LaunchTest, DryRunPrintsTheCommandsAndStartsNothing) {
  const ProcessResult result = launch(writeCluster({.ports = freePorts(4)}), {"--dry-run"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("psd --cluster"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("--task 1"), std::string::npos) << result.out;
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/runs"));
}

TEST_F(LaunchTest, JsonEndsWithTheSummary) {
  const ProcessResult result = launch(writeCluster({}), {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::string last;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) last = line;
  const Json s = Json::parse(last);
  EXPECT_EQ(s["outcome"], "done") << last;
  EXPECT_EQ(s["global_step"], 40) << last;
}

TEST_F(LaunchTest, SetChangesAValueOfTheFile) {
  const ProcessResult result = launch(writeCluster({}), {"--set", "train.steps=13"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["global_step"], 13);
}

}  // namespace dtf::testing
