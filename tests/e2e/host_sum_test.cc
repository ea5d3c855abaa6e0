// Sums by host (replication.topology): the workers with one address sum their gradients in memory
// that they share. "Hosts" are addresses of the loopback device here; tests/hosts/traffic_test.py
// has hosts with links.

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

class HostSumTest : public ClusterTest {
 protected:
  static constexpr auto kEnd = seconds(60);

  // Four workers on two hosts.
  static ClusterOptions job(int ps) {
    return {.ps = ps,
            .workers = 4,
            .mode = "sync",
            .steps = 60,
            .optimizer = "{adam: {learning_rate: 0.01}}",
            .layers = "[flatten: , dense: {units: 16, activation: relu}, dense: {units: 10}]",
            .replication_more = ", topology: {hosts: sum}",
            .train_more = "  checkpoint: {every_steps: 1000}\n"};
  }

  // Each ps is on the first host, the first half of the workers, too.
  void write(ClusterOptions options, const std::string& name) {
    options.ports = freePorts(options.ps + options.workers);
    file_ = writeCluster(options, name);
    std::string text = folder_.read(name + ".yaml");
    for (int i = 0; i < options.ps + options.workers; ++i) {
      const std::string port = ":" + std::to_string(options.ports[static_cast<size_t>(i)]);
      const bool is_far = i >= options.ps + options.workers / 2;
      const std::string here = "localhost" + port;
      text.replace(text.find(here), here.size(), (is_far ? "127.0.0.2" : "127.0.0.1") + port);
    }
    folder_.write(name + ".yaml", text);
  }

  void start(const std::string& task, int index) {
    tasks_[{task, index}] =
        std::make_unique<Process>(startTask(file_, task, index, {}, unhurried()));
  }
  void startAll(const ClusterOptions& options, const std::string& name) {
    tasks_.clear();
    write(options, name);
    for (int i = 0; i < options.ps; ++i) start("ps", i);
    for (int i = 0; i < options.workers; ++i) start("worker", i);
  }
  Process& worker(int rank) { return *tasks_.at({"worker", rank}); }

  void expectTheEnd() {
    for (auto& [task, process] : tasks_) {
      const ProcessResult result = process->wait(kEnd);
      EXPECT_EQ(result.exit_code, 0) << task.first << "/" << task.second << ": " << result.err;
    }
  }

  std::string digestOf(const std::string& name) {
    const std::string digest = summary(name)["parameters_digest"].asString();
    EXPECT_NE(digest, "");
    return digest;
  }

  // Returns the digest of a job in which nobody is lost.
  std::string calmDigest(const ClusterOptions& options, const std::string& name) {
    startAll(options, name);
    expectTheEnd();
    return digestOf(name);
  }

  // Kills these tasks once the chief is well into the training, and starts them again.
  void loseAndStartAgain(const std::set<std::pair<std::string, int>>& lost) {
    ASSERT_TRUE(worker(0).waitForOutput("event=progress", kEnd)) << worker(0).err();
    for (const auto& task : lost) tasks_.at(task)->signal(SIGKILL);
    for (const auto& task : lost) {
      tasks_.at(task)->wait(kEnd);
      start(task.first, task.second);
    }
  }

  // The folders in shared memory of this test's jobs that still exist.
  static std::set<std::string> memoryOf(const std::string& job) {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
      if (entry.path().filename().string().find("-" + job + "-") != std::string::npos)
        found.insert(entry.path().filename());
    return found;
  }

  std::string file_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Process>> tasks_;
};

}  // namespace

TEST_F(HostSumTest, TheDigestIsTheSameWithPsAndWithoutAndInEveryRun) {
  const std::string digest = calmDigest(job(1), "hostsum-one");
  EXPECT_EQ(calmDigest(job(1), "hostsum-again"), digest);
  EXPECT_EQ(calmDigest(job(2), "hostsum-two"), digest);
  EXPECT_EQ(calmDigest(job(0), "hostsum-without"), digest);
  EXPECT_NE(worker(0).err().find("event=host_sum workers=2 leader=worker/0 leads=true"),
            std::string::npos);
  EXPECT_NE(worker(3).err().find("event=host_sum workers=2 leader=worker/2 leads=false"),
            std::string::npos);
  for (const char* name : {"hostsum-one", "hostsum-again", "hostsum-two", "hostsum-without"})
    EXPECT_TRUE(memoryOf(name).empty()) << name;
}

// 90 examples are 9 batches of 10: in the last step of an epoch the second host has no examples.
TEST_F(HostSumTest, EveryExampleCountsOnceInAShortStepToo) {
  ClusterOptions options = job(1);
  options.epochs = 4;
  options.examples = 90;
  options.batch_size = 10;
  const std::string digest = calmDigest(options, "hostsum-epochs");
  options.ps = 0;
  EXPECT_EQ(calmDigest(options, "hostsum-epochs-without"), digest);
}

TEST_F(HostSumTest, AWorkerThatIsLostComesBackToTheSameValues) {
  ClusterOptions options = job(2);
  options.steps = 300;
  options.top_more = "durability: replica\n";
  const std::string digest = calmDigest(options, "hostsum-calm");
  using Tasks = std::set<std::pair<std::string, int>>;
  for (const Tasks& lost :
       {Tasks{{"worker", 1}}, Tasks{{"worker", 2}}, Tasks{{"worker", 0}},
        Tasks{{"worker", 2}, {"worker", 3}}, Tasks{{"ps", 1}}, Tasks{{"ps", 0}, {"worker", 2}}}) {
    SCOPED_TRACE(::testing::PrintToString(lost));
    startAll(options, "hostsum-lost");
    loseAndStartAgain(lost);
    expectTheEnd();
    EXPECT_EQ(digestOf("hostsum-lost"), digest);
    std::filesystem::remove_all(folder_.path() + "/runs/hostsum-lost");
  }
}

TEST_F(HostSumTest, WithoutPsAWorkerThatIsLostComesBackToTheSameValues) {
  ClusterOptions options = job(0);
  options.steps = 300;
  const std::string digest = calmDigest(options, "hostsum-calm");
  using Tasks = std::set<std::pair<std::string, int>>;
  for (const Tasks& lost : {Tasks{{"worker", 3}}, Tasks{{"worker", 0}}}) {
    SCOPED_TRACE(::testing::PrintToString(lost));
    startAll(options, "hostsum-lost");
    loseAndStartAgain(lost);
    expectTheEnd();
    EXPECT_EQ(digestOf("hostsum-lost"), digest);
    std::filesystem::remove_all(folder_.path() + "/runs/hostsum-lost");
  }
}

// Its shard and its replica are gone at once, so all go back to the checkpoint.
TEST_F(HostSumTest, TheJobGoesBackToACheckpointAsOne) {
  ClusterOptions options = job(1);
  options.steps = 300;
  options.train_more = "  checkpoint: {every_steps: 20}\n";
  const std::string digest = calmDigest(options, "hostsum-calm");
  startAll(options, "hostsum-back");
  loseAndStartAgain({{"ps", 0}});
  expectTheEnd();
  EXPECT_NE(worker(3).err().find("event=went_back"), std::string::npos) << worker(3).err();
  EXPECT_EQ(digestOf("hostsum-back"), digest);
}

TEST_F(HostSumTest, AMemberThatDoesNotComeBackIsNamed) {
  ClusterOptions options = job(1);
  options.steps = kEndless;
  options.top_more = "timeouts: {rejoin_seconds: 2}\n";
  startAll(options, "hostsum-gone");
  ASSERT_TRUE(worker(0).waitForOutput("event=progress", kEnd)) << worker(0).err();
  worker(3).signal(SIGKILL);
  worker(3).wait(kEnd);
  for (const int rank : {0, 1, 2}) {
    const ProcessResult result = worker(rank).wait(kEnd);
    EXPECT_NE(result.exit_code, 0);
    // worker/1 may have waited for its leader, which waited for worker/3.
    const char* const whom = rank == 1 ? "worker/" : "worker/3";
    EXPECT_NE(result.err.find(whom), std::string::npos) << rank << ": " << result.err;
  }
}

TEST_F(HostSumTest, SparseVariablesAreRefusedInWords) {
  ClusterOptions options = job(1);
  options.layers = "[embedding: {input_dim: 300, output_dim: 4}, flatten: , dense: {units: 10}]";
  options.top_more = "timeouts: {start_seconds: 5}\n";
  startAll(options, "hostsum-sparse");
  const ProcessResult result = worker(0).wait(kEnd);
  EXPECT_EQ(result.exit_code, 78) << result.err;
  EXPECT_NE(result.err.find("leave out 'topology'"), std::string::npos) << result.err;
  tasks_.at({"ps", 0})->signal(SIGKILL);
  for (auto& [task, process] : tasks_) process->wait(kEnd);
}

}  // namespace dtf::testing
