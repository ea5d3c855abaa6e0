// Jobs by hand in which one task fails. The others end within seconds, each with the reason, the
// name of the failed task, and an exit code of its own. No launcher is there to stop them.

#include <signal.h>

#include <chrono>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

// Four times as long (process.h) is still below start_seconds and rejoin_seconds, 60 unless set.
constexpr auto kTravelsWithin = seconds(10);

// ps/0, ps/1, worker/0 and worker/1 of a job that never ends by itself.
class FailureTravelsTest : public ClusterTest {
 protected:
  enum Task : size_t { kPs0, kPs1, kWorker0, kWorker1 };

  static ClusterOptions endless(const std::string& top_more = "") {
    return {.mode = "sync", .steps = 100'000'000, .top_more = top_more};
  }

  // All tasks but `absent`; `more`: of worker/1's command line; `of_ps1`: its environment.
  void start(ClusterOptions options, std::optional<Task> absent = std::nullopt,
             const std::vector<std::string>& more = {},
             const std::map<std::string, std::string>& of_ps1 = {}) {
    options.ports = freePorts(4);
    const std::string file = writeCluster(options);
    for (const Task task : {kPs0, kPs1, kWorker0, kWorker1}) {
      if (task == absent) continue;
      const bool is_ps = task == kPs0 || task == kPs1;
      const int index = task == kPs1 || task == kWorker1 ? 1 : 0;
      tasks_.emplace(task, startTask(file, is_ps ? "ps" : "worker", index,
                                     task == kWorker1 ? more : std::vector<std::string>{},
                                     task == kPs1 ? of_ps1 : std::map<std::string, std::string>{}));
    }
  }

  void clear() { tasks_.clear(); }
  Process& task(Task which) { return tasks_.at(which); }

  void awaitTraining() {
    ASSERT_TRUE(task(kWorker0).waitForOutput("event=progress", seconds(30)))
        << task(kWorker0).err();
  }

  // `which` ends soon, and its last error says so.
  void expectEnd(Task which, int exit_code, const std::string& reason) {
    const ProcessResult result = task(which).wait(kTravelsWithin);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    const size_t failed = result.err.rfind("event=failed");
    const std::string last = failed == std::string::npos ? result.err : result.err.substr(failed);
    EXPECT_NE(last.find(reason), std::string::npos)
        << "task " << which << " does not say: " << reason << "\n"
        << result.err;
  }

 private:
  std::map<Task, Process> tasks_;
};

TEST_F(FailureTravelsTest, DataThatAWorkerCannotRead) {
  start(endless(), std::nullopt,
        {"--set", "train.data.train={format: idx, images: /nowhere, labels: /nowhere}"});
  expectEnd(kWorker1, 65, "/nowhere: cannot open it");
  for (const Task other : {kPs0, kPs1, kWorker0})
    expectEnd(other, 69, "the job was ended by worker/1");
}

TEST_F(FailureTravelsTest, AKilledWorkerThatNobodyWaitsFor) {
  start(endless("timeouts: {rejoin_seconds: 0}\n"));
  awaitTraining();
  task(kWorker1).signal(SIGKILL);
  for (const Task other : {kWorker0, kPs0, kPs1})
    expectEnd(other, 69, "worker/1 was lost (its process ended)");
}

TEST_F(FailureTravelsTest, AKilledChiefThatNobodyWaitsFor) {
  start(endless("timeouts: {rejoin_seconds: 0}\n"));
  awaitTraining();
  task(kWorker0).signal(SIGKILL);
  for (const Task other : {kWorker1, kPs0, kPs1})
    expectEnd(other, 69, "worker/0 was lost (its process ended)");
}

TEST_F(FailureTravelsTest, AFrozenWorkerIsTheOneThatAllName) {
  start(endless("timeouts: {lease_seconds: 2, heartbeat_seconds: 0.5, rejoin_seconds: 1}\n"));
  awaitTraining();
  task(kWorker1).signal(SIGSTOP);
  for (const Task other : {kWorker0, kPs0, kPs1})
    expectEnd(other, 69, "worker/1 was lost (no heartbeat for 2 s), and did not return within 1 s");
}

TEST_F(FailureTravelsTest, AKilledPs) {
  for (const Task lost : {kPs0, kPs1}) {
    start(endless("timeouts: {rejoin_seconds: 2}\n"));
    awaitTraining();
    task(lost).signal(SIGKILL);
    const std::string name = lost == kPs0 ? "ps/0" : "ps/1";
    for (const Task other : {kWorker0, kWorker1, lost == kPs0 ? kPs1 : kPs0})
      expectEnd(other, 69, name);
    task(lost).wait(kTravelsWithin);
    clear();
  }
}

TEST_F(FailureTravelsTest, APsThatAPersonEndsAtOnce) {
  ClusterOptions saving = endless("timeouts: {rejoin_seconds: 2, heartbeat_seconds: 4}\n");
  saving.train_more = "  checkpoint: {every_seconds: 600}\n";
  start(saving);
  awaitTraining();
  task(kPs1).signal(SIGTERM);
  ASSERT_TRUE(task(kPs1).waitForOutput("event=stopping", seconds(10))) << task(kPs1).err();
  task(kPs1).signal(SIGTERM);  // a service manager signals all tasks of a job: still one request
  task(kPs1).signal(SIGINT);
  EXPECT_EQ(task(kPs1).wait(kTravelsWithin).exit_code, 128 + SIGINT);
  for (const Task other : {kWorker0, kWorker1, kPs0}) expectEnd(other, 69, "ps/1");
}

// Training is done, but ps/1 cannot save: every task that stays to the end reports it and names
// ps/1.
TEST_F(FailureTravelsTest, APsWhoseDiskDoesNotTakeTheLastCheckpoint) {
  ClusterOptions saving = endless();
  saving.steps = 200;
  saving.train_more = "  checkpoint: {every_seconds: 600}\n";
  start(saving, std::nullopt, {}, {{"DTF_FAILPOINTS", "checkpoint.in_shard_write=error"}});
  expectEnd(kWorker0, 73, "its last checkpoint could not be written: ps/1: ");
  // It may have left by then: its own work is done.
  const bool has_left = task(kWorker1).wait(kTravelsWithin).exit_code == 0;
  expectEnd(kWorker1, has_left ? 0 : 69,
            has_left ? "finished" : "its last checkpoint could not be written: ps/1: ");
  for (const Task other : {kPs0, kPs1})
    expectEnd(other, 69, "its last checkpoint could not be written: ps/1: ");
  EXPECT_NE(task(kPs1).err().find("event=save_failed"), std::string::npos) << task(kPs1).err();
}

TEST_F(FailureTravelsTest, AWorkerThatNobodyStarts) {
  start(endless("timeouts: {start_seconds: 4}\n"), kWorker1);
  for (const Task other : {kWorker0, kPs0, kPs1})
    expectEnd(other, 69, "worker/0 waited 4 s at barrier 'start' for worker/1");
}

TEST_F(FailureTravelsTest, APsThatNobodyStarts) {
  for (const Task absent : {kPs0, kPs1}) {
    start(endless("timeouts: {start_seconds: 4}\n"), absent);
    const std::string reason =
        std::string("cannot reach ps/") + (absent == kPs0 ? "0" : "1") + " (localhost:";
    for (const Task other : {kWorker0, kWorker1, absent == kPs0 ? kPs1 : kPs0})
      expectEnd(other, 69, reason);
    clear();
  }
}

// The one that waits is not to blame.
TEST_F(FailureTravelsTest, AFrozenWorkerOfALaunchIsNamedByAllAndIsTheRootCause) {
  const std::string file = writeCluster(
      endless("timeouts: {lease_seconds: 4, heartbeat_seconds: 0.5, rejoin_seconds: 1}\n"
              "launch: {restarts: {max: 0}}\n"));
  Process launcher(launchCommand(file), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("worker 2/2", seconds(30))) << launcher.err();
  const auto record = Json::parse(folder_.read("runs/job/launch.json"));
  ASSERT_EQ(record["tasks"][3]["name"], "worker/1");
  ::kill(record["tasks"][3]["pid"].asInt(), SIGSTOP);
  const ProcessResult result = launcher.wait(seconds(30));
  EXPECT_EQ(result.exit_code, 69) << result.err;
  for (const char* named :
       {" s: suspended: worker/1", "job failed: worker/1 has not run for",
        "worker/1 was lost (no heartbeat for 4 s), and did not return within 1 s"})
    EXPECT_NE(result.err.find(named), std::string::npos) << named << "\n" << result.err;
  EXPECT_NE(
      folder_.read("runs/job/logs/worker-0.1.log").find("event=waiting for=\"worker/1 in step"),
      std::string::npos);
  EXPECT_NE(summary()["tasks"][3]["cause"].dump().find("it is suspended"), std::string::npos);
  expectNobodyLeft();
}

}  // namespace

}  // namespace dtf::testing
