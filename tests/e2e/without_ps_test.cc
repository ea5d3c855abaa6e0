// Jobs without ps: each of several workers hosts a shard of the parameters. The values are those of
// the same job with ps, to the bit, whoever is lost meanwhile.

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

class WithoutPsTest : public ClusterTest {
 protected:
  static constexpr auto kEnd = seconds(60);

  std::string digestOf(const std::string& name) {
    return summary(name)["parameters_digest"].asString();
  }

  // Expects the values of the same job with two ps.
  void expectValuesOfJobWithPs(ClusterOptions options, const std::string& name) {
    options.ps = 2;
    const ProcessResult with = launch(writeCluster(options, name + "-with"));
    ASSERT_EQ(with.exit_code, 0) << with.err;
    options.ps = 0;
    const ProcessResult without = launch(writeCluster(options, name));
    ASSERT_EQ(without.exit_code, 0) << without.err;
    EXPECT_NE(digestOf(name), "");
    EXPECT_EQ(digestOf(name), digestOf(name + "-with")) << name;
    EXPECT_EQ(summary(name)["final_loss"], summary(name + "-with")["final_loss"]);
  }

  // The workers of a file, by hand. Those started before end first.
  void start(const std::string& file, int workers) {
    workers_.clear();
    file_ = file;
    for (int rank = 0; rank < workers; ++rank) workers_.push_back(startWorker(rank));
  }
  std::unique_ptr<Process> startWorker(int rank) {
    return std::make_unique<Process>(startTask(file_, "worker", rank, {}, unhurried()));
  }

  // Kills these workers once the chief is well into the training, and starts them again.
  void loseAndStartAgain(const std::set<int>& ranks) {
    ASSERT_TRUE(workers_[0]->waitForOutput("event=progress", kEnd)) << workers_[0]->err();
    for (const int rank : ranks) workers_[static_cast<size_t>(rank)]->signal(SIGKILL);
    for (const int rank : ranks) {
      workers_[static_cast<size_t>(rank)]->wait(kEnd);
      workers_[static_cast<size_t>(rank)] = startWorker(rank);
    }
  }
  // Of a file that may not be there.
  static std::string textOf(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Waits until a file of the test's folder contains a text.
  bool awaitFile(const std::string& name, const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + Process::kSlowest * kEnd;
    const std::filesystem::path file = folder_.path() + "/" + name;
    while (std::chrono::steady_clock::now() < end) {
      if (textOf(file).find(text) != std::string::npos) return true;
      ::poll(nullptr, 0, 5);
    }
    return false;
  }

  // The last error of a process.
  static std::string lastErrorOf(const ProcessResult& result) {
    const size_t failed = result.err.rfind("event=failed");
    return failed == std::string::npos ? result.err : result.err.substr(failed);
  }

  void awaitEnd() {
    for (const auto& worker : workers_) {
      const ProcessResult result = worker->wait(kEnd);
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
  }

  std::string file_;
  std::vector<std::unique_ptr<Process>> workers_;
};

ClusterOptions threeWorkers() {
  return {.ps = 0,
          .workers = 3,
          .mode = "sync",
          .steps = 300,
          .optimizer = "{adam: {learning_rate: 0.01}}",
          .train_more = "  checkpoint: {every_steps: 1000}\n"};
}

}  // namespace

TEST_F(WithoutPsTest, TheValuesAreThoseOfTheSameJobWithPs) {
  expectValuesOfJobWithPs({.workers = 2, .mode = "sync"}, "plain");
  expectValuesOfJobWithPs({.workers = 3,
                           .mode = "sync",
                           .optimizer = "{momentum: {learning_rate: 0.05, momentum: 0.9, "
                                        "moving_average: {decay: 0.9}, clip_by_global_norm: 1}}",
                           .worker_more = ", devices: [cpu:0, cpu:1]"},
                          "towers");
}

TEST_F(WithoutPsTest, OptimizersThatNeedWholeVariablesHaveThem) {
  expectValuesOfJobWithPs({.workers = 2,
                           .mode = "sync",
                           .optimizer = "{lamb: {learning_rate: 0.01}}",
                           .layers = "[flatten: , dense: {units: 7}, dense: {units: 10}]"},
                          "lamb");
}

TEST_F(WithoutPsTest, AnyCutGivesTheSameValues) {
  ClusterOptions options{.ps = 0, .workers = 2, .mode = "allreduce", .steps = 60};
  ASSERT_EQ(launch(writeCluster(options, "even")).exit_code, 0);
  options.train_more = "  placement: {pins: {softmax/weights: \"/job:worker/task:1\"}}\n";
  ASSERT_EQ(launch(writeCluster(options, "pinned")).exit_code, 0);
  options.train_more = "  placement: {strategy: round_robin}\n";
  ASSERT_EQ(launch(writeCluster(options, "round_robin")).exit_code, 0);
  EXPECT_EQ(digestOf("pinned"), digestOf("even"));
  EXPECT_EQ(digestOf("round_robin"), digestOf("even"));
}

TEST_F(WithoutPsTest, AsyncAndBoundedTrainingEnd) {
  for (const char* mode : {"async", "bounded, staleness: 2"}) {
    const ClusterOptions options{.ps = 0, .workers = 3, .mode = mode, .steps = 100};
    const ProcessResult result = launch(writeCluster(options));
    EXPECT_EQ(result.exit_code, 0) << mode << result.err;
    EXPECT_GE(summary()["global_step"].asUint64(), 100u);
  }
}

TEST_F(WithoutPsTest, BackupWorkersToo) {
  const ProcessResult result = launch(writeCluster(
      {.ps = 0, .workers = 3, .mode = "sync", .replication_more = ", replicas_to_aggregate: 2"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(WithoutPsTest, WhoeverIsLostComesBackToTheSameValues) {
  ASSERT_EQ(launch(writeCluster(threeWorkers(), "calm")).exit_code, 0);
  ClusterOptions options = threeWorkers();
  for (const std::set<int>& lost :
       {std::set<int>{1}, std::set<int>{0}, std::set<int>{0, 2}, std::set<int>{0, 1, 2}}) {
    SCOPED_TRACE(::testing::PrintToString(lost));
    options.ports = freePorts(3);
    start(writeCluster(options, "lost"), 3);
    loseAndStartAgain(lost);
    awaitEnd();
    EXPECT_EQ(digestOf("lost"), digestOf("calm"));
    std::filesystem::remove_all(folder_.path() + "/runs/lost");
  }
}

// The second worker that is lost holds the replica of the first one's shard, which has been filled
// from it.
TEST_F(WithoutPsTest, OneAfterTheOtherLosesNoStep) {
  ASSERT_EQ(launch(writeCluster(threeWorkers(), "calm")).exit_code, 0);
  ClusterOptions options = threeWorkers();
  options.ports = freePorts(3);
  start(writeCluster(options, "lost"), 3);
  loseAndStartAgain({1});
  ASSERT_TRUE(workers_[0]->waitForOutput("takes its values from replicas", kEnd));
  ASSERT_TRUE(workers_[1]->waitForOutput("event=replica_seeded", kEnd));
  loseAndStartAgain({2});
  awaitEnd();
  const std::string log = workers_[0]->err();
  EXPECT_EQ(log.find("all go back"), std::string::npos) << log;
  EXPECT_EQ(digestOf("lost"), digestOf("calm"));
}

TEST_F(WithoutPsTest, AnotherLeaderGivesTheSameValuesAndMayBeLostToo) {
  ASSERT_EQ(launch(writeCluster(threeWorkers(), "calm")).exit_code, 0);
  ClusterOptions options = threeWorkers();
  options.replication_more = ", leader: worker/1";
  ASSERT_EQ(launch(writeCluster(options, "led")).exit_code, 0);
  EXPECT_EQ(digestOf("led"), digestOf("calm"));
  for (const std::set<int>& lost : {std::set<int>{1}, std::set<int>{0}}) {
    SCOPED_TRACE(::testing::PrintToString(lost));
    options.ports = freePorts(3);
    start(writeCluster(options, "lost"), 3);
    loseAndStartAgain(lost);
    awaitEnd();
    EXPECT_EQ(digestOf("lost"), digestOf("calm"));
    std::filesystem::remove_all(folder_.path() + "/runs/lost");
  }
}

TEST_F(WithoutPsTest, AJobGoesOnUnderAnotherLeader) {
  ClusterOptions options = threeWorkers();
  options.train_more = "  checkpoint: {every_steps: 20}\n";
  options.steps = 40;
  ASSERT_EQ(launch(writeCluster(options)).exit_code, 0);
  options.steps = 60;
  options.replication_more = ", leader: worker/2";
  const ProcessResult result = launch(writeCluster(options));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("going on from the checkpoint of step 40"), std::string::npos)
      << result.err;
  EXPECT_EQ(summary()["global_step"], 60);
}

TEST_F(WithoutPsTest, WorkersWithDifferentLeadersAreRefused) {
  ClusterOptions options = threeWorkers();
  options.ports = freePorts(3);
  options.top_more = "timeouts: {start_seconds: 5}\n";
  file_ = writeCluster(options);
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<std::string> more;
    if (rank == 2) more = {"--set", "train.replication.leader=worker/2"};
    workers_.push_back(std::make_unique<Process>(startTask(file_, "worker", rank, more)));
  }
  int refused = 0;
  for (const auto& worker : workers_) {
    const ProcessResult result = worker->wait(kEnd);
    EXPECT_NE(result.exit_code, 0) << result.err;
    refused += result.err.find("or replication.leader differs") != std::string::npos;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(WithoutPsTest, TensorFlowsFlagsWithoutPsHosts) {
  const std::vector<int> p = freePorts(2);
  const std::string hosts =
      "localhost:" + std::to_string(p[0]) + ",localhost:" + std::to_string(p[1]);
  const std::string train = folder_.write(
      "train.yaml",
      "model: {input: {shape: [28, 28, 1]}, layers: [flatten: , dense: {units: 10}], "
      "loss: sparse_categorical_crossentropy}\ndata: {train: {format: digits, count: 300}, "
      "batch_size: 10}\nsteps: 20\n");
  for (int rank = 0; rank < 2; ++rank)
    workers_.push_back(std::make_unique<Process>(
        std::vector<std::string>{binary("workerd"), "--worker_hosts=" + hosts,
                                 "--task_index=" + std::to_string(rank), "--train", train},
        std::map<std::string, std::string>{}, folder_.path()));
  awaitEnd();
}

TEST_F(WithoutPsTest, AJobGoesOnWithAnotherNumberOfWorkersAndWithPs) {
  ClusterOptions options{.ps = 0,
                         .workers = 3,
                         .mode = "sync",
                         .steps = 40,
                         .optimizer = "{adam: {learning_rate: 0.01}}",
                         .train_more = "  checkpoint: {every_steps: 20}\n"};
  int steps = 40;
  for (const auto& [ps, workers] : {std::pair{0, 3}, {0, 2}, {2, 2}, {0, 1}, {0, 4}}) {
    options.ps = ps;
    options.workers = workers;
    options.steps = steps;
    const ProcessResult result = launch(writeCluster(options));
    ASSERT_EQ(result.exit_code, 0) << ps << " ps, " << workers << " workers\n" << result.err;
    EXPECT_EQ(summary()["global_step"], steps);
    steps += 20;
  }
}

TEST_F(WithoutPsTest, AWorkerThatNeverComesIsNamed) {
  ClusterOptions options = threeWorkers();
  options.ports = freePorts(3);
  options.top_more = "timeouts: {start_seconds: 2}\n";
  start(writeCluster(options), 2);
  for (const auto& worker : workers_) {
    const ProcessResult result = worker->wait(kEnd);
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(result.err.find("worker/2"), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("ps/"), std::string::npos) << result.err;
  }
}

TEST_F(WithoutPsTest, AFailureThatEndsTheJobReachesAllWorkers) {
  ClusterOptions options = threeWorkers();
  options.steps = kEndless;
  options.ports = freePorts(3);
  file_ = writeCluster(options);
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<std::string> more;
    if (rank == 1)
      more = {"--set", "train.data.train={format: idx, images: /nowhere, labels: /nowhere}"};
    workers_.push_back(std::make_unique<Process>(startTask(file_, "worker", rank, more)));
  }
  const ProcessResult failed = workers_[1]->wait(kEnd);
  EXPECT_EQ(failed.exit_code, 65) << failed.err;
  for (const int other : {0, 2}) {
    const ProcessResult result = workers_[static_cast<size_t>(other)]->wait(kEnd);
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(lastErrorOf(result).find("the job was ended by worker/1: "), std::string::npos)
        << result.err;
    EXPECT_NE(lastErrorOf(result).find("/nowhere: cannot open it"), std::string::npos)
        << result.err;
  }
}

// A worker that a signal ends may be started again, so the others wait for it; in vain, they say
// why it left.
TEST_F(WithoutPsTest, TheReasonOfAWorkerThatLeavesReachesTheOthers) {
  ClusterOptions options = threeWorkers();
  options.steps = kEndless;
  options.train_more = "  checkpoint: none\n";
  options.top_more = "timeouts: {rejoin_seconds: 2}\n";
  options.ports = freePorts(3);
  start(writeCluster(options), 3);
  ASSERT_TRUE(workers_[0]->waitForOutput("event=progress", kEnd)) << workers_[0]->err();
  workers_[2]->signal(SIGTERM);
  EXPECT_EQ(workers_[2]->wait(kEnd).exit_code, 128 + SIGTERM);
  for (const int other : {0, 1}) {
    Process& worker = *workers_[static_cast<size_t>(other)];
    EXPECT_TRUE(worker.waitForOutput("it has left: it was ended by signal 15", kEnd))
        << worker.err();
    const ProcessResult result = worker.wait(kEnd);
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(lastErrorOf(result).find("worker/2"), std::string::npos) << result.err;
    for (const char* ps : {"ps/0", "ps/1", "ps/2"})
      EXPECT_EQ(result.err.find(ps), std::string::npos) << result.err;
  }
}

// The chief's own shard is among the hosts that are told, on the loop that handles the signal.
TEST_F(WithoutPsTest, WithoutTheChiefThatAPersonEndedNobodyTrainsOn) {
  ClusterOptions options = threeWorkers();
  options.steps = kEndless;
  options.train_more = "  checkpoint: none\n";
  options.ports = freePorts(3);
  start(writeCluster(options), 3);
  ASSERT_TRUE(workers_[0]->waitForOutput("event=progress", kEnd)) << workers_[0]->err();
  workers_[0]->signal(SIGTERM);
  const ProcessResult chief = workers_[0]->wait(kEnd);
  EXPECT_EQ(chief.exit_code, 128 + SIGTERM) << chief.err;
  // A host may reply that the job has ended already.
  EXPECT_EQ(chief.err.find("reason=\"no reply for"), std::string::npos) << chief.err;
  for (const int other : {1, 2}) {
    const ProcessResult result = workers_[static_cast<size_t>(other)]->wait(kEnd);
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(lastErrorOf(result).find("the job was ended by worker/0: it was ended by signal 15"),
              std::string::npos)
        << result.err;
  }
}

TEST_F(WithoutPsTest, TheStatusOfAWorkerHasThatOfItsShard) {
  ClusterOptions options = threeWorkers();
  options.steps = kEndless;
  options.top_more = "metrics: {port: auto}\n";
  options.ports = freePorts(3);
  const std::string file = writeCluster(options);
  start(file, 3);
  ASSERT_TRUE(workers_[0]->waitForOutput("event=progress", kEnd)) << workers_[0]->err();
  const ProcessResult asked =
      runProcess({binary("dtf-launch"), "status", file, "--json"}, std::chrono::seconds(60));
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  const Json status = Json::parse(asked.out);
  for (const auto& task : status["tasks"]) {
    const Json& answer = task["answer"];
    EXPECT_EQ(answer["workers"]["worker/2"], "joined") << answer;
    EXPECT_TRUE(answer.contains("awaited")) << answer;
    EXPECT_TRUE(answer["metrics"].isString()) << answer;
    EXPECT_TRUE(answer.contains("loss")) << answer;
  }
}

// Two workers have finished; the chief, whose shard goes on, still evaluates. The lost one hosts a
// shard that the chief needs, so another process of it comes, which knows that the third worker has
// finished.
TEST_F(WithoutPsTest, AWorkerThatIsLostBehindItsEndIsStartedAgain) {
  ClusterOptions options = threeWorkers();
  options.steps = 60;
  Process launcher(launchCommand(writeCluster(options), {"-v"}),
                   {{"DTF_FAILPOINTS", "ending.in_last_evaluation=sleep:15000"}}, folder_.path());
  const auto pidOf = [this](const std::string& rank) {
    const std::string task = std::string("--task\0", 7) + rank;
    for (const std::string& process : leftovers())
      if (process.find("workerd") != std::string::npos && process.find(task) != std::string::npos)
        return static_cast<pid_t>(std::stoi(process));
    return pid_t{0};
  };
  for (const char* rank : {"1", "2"})
    ASSERT_TRUE(awaitFile("runs/job/logs/worker-" + std::string(rank) + ".1.log", "event=finished"))
        << launcher.err();
  const pid_t lost = pidOf("1");
  ASSERT_GT(lost, 0);
  ::kill(lost, SIGKILL);
  ASSERT_TRUE(launcher.waitForOutput("starting it again", kEnd)) << launcher.err();
  ASSERT_TRUE(awaitFile("runs/job/logs/worker-1.2.log", "event=listening")) << launcher.err();
  const std::string environment = textOf("/proc/" + std::to_string(pidOf("1")) + "/environ");
  EXPECT_NE(environment.find(std::string("DTF_FINISHED_WORKERS=2\0", 23)), std::string::npos);
  const ProcessResult result = launcher.wait(kEnd);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["outcome"], "done");
  expectNothingLeft();
}

TEST_F(WithoutPsTest, ASignalSavesAndAnotherStartGoesOn) {
  ClusterOptions options = threeWorkers();
  options.steps = 100'000;
  const std::string file = writeCluster(options);
  Process launcher(launchCommand(file), unhurried(), folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("step 1", kEnd)) << launcher.err();
  launcher.signal(SIGINT);
  const ProcessResult stopped = launcher.wait(kEnd);
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  const uint64_t step = summary()["global_step"].asUint64();
  EXPECT_GT(step, 0u);
  const ProcessResult gone_on = launch(file, {"--set", "train.steps=" + std::to_string(step + 10)});
  EXPECT_EQ(gone_on.exit_code, 0) << gone_on.err;
  EXPECT_EQ(summary()["global_step"], step + 10);
  expectNothingLeft();
}

}  // namespace dtf::testing
