// psd and workerd started one by one, as in four terminals: in any order, with either form of the
// command line, and with a task that never comes.

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Four times as long (process.h) is still below timeouts.start_seconds and step_seconds, 60.
constexpr auto kSoon = seconds(10);

class ByHandTest : public ClusterTest {
 protected:
  static void pause(milliseconds time) { ::poll(nullptr, 0, static_cast<int>(time.count())); }
};

TEST_F(ByHandTest, FourTerminalsWithAClusterFile) {
  const std::string file = writeCluster({.ports = freePorts(4)});
  std::vector<Process> tasks = startFour(file);
  for (Process& task : tasks) {
    const ProcessResult result = task.wait(seconds(30));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(summary()["outcome"], "done")
      << "the chief writes the summary where there is no launcher";
  EXPECT_EQ(summary()["global_step"], 40);
  expectNothingLeft();
}

TEST_F(ByHandTest, FourTerminalsWithTensorFlowsFlags) {
  const std::vector<int> p = freePorts(4);
  const std::string ps = "localhost:" + std::to_string(p[0]) + ",localhost:" + std::to_string(p[1]);
  const std::string workers =
      "localhost:" + std::to_string(p[2]) + ",localhost:" + std::to_string(p[3]);
  const std::string train =
      folder_.write("train.yaml",
                    "model: {input: {shape: [28, 28, 1]}, layers: [flatten: "
                    ", dense: {units: 10, name: softmax}], "
                    "loss: sparse_categorical_crossentropy}\ndata: {train: {format: "
                    "digits, count: 300}, batch_size: 10}\nsteps: 20\n");
  std::vector<Process> tasks;
  for (int i = 0; i < 2; ++i) {
    tasks.emplace_back(std::vector<std::string>{binary("psd"), "--ps-hosts", ps, "--worker-hosts",
                                                workers, "--task-index", std::to_string(i),
                                                "--job-name", "ps"});
    tasks.emplace_back(
        std::vector<std::string>{binary("workerd"), "--ps_hosts=" + ps, "--worker_hosts=" + workers,
                                 "--task_index=" + std::to_string(i), "--train", train},
        std::map<std::string, std::string>{}, folder_.path());
  }
  for (Process& task : tasks) {
    const ProcessResult result = task.wait(seconds(30));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST_F(ByHandTest, EachEvaluationIsALineInTheTerminal) {
  const std::string file = writeCluster(
      {.mode = "sync", .train_more = "  eval: {every_steps: 10}\n", .ports = freePorts(4)});
  std::vector<Process> tasks = startFour(file);
  for (Process& task : tasks) ASSERT_EQ(task.wait(seconds(30)).exit_code, 0) << task.err();
  const std::string log = tasks[kChiefTask].err();
  for (const char* step : {"10", "20", "30", "40"})
    EXPECT_NE(log.find(std::string("event=evaluated step=") + step + " loss="), std::string::npos)
        << step << "\n"
        << log;
  EXPECT_NE(log.find(" accuracy=0."), std::string::npos) << log;
}

TEST_F(ByHandTest, MetricsWithoutDataToEvaluateAreAWarning) {
  const std::vector<int> p = freePorts(2);
  const std::string ps = "localhost:" + std::to_string(p[0]);
  const std::string worker = "localhost:" + std::to_string(p[1]);
  const std::string train = folder_.write(
      "train.yaml",
      "model: {input: {shape: [28, 28, 1]}, layers: [flatten: , dense: {units: 10}], loss: "
      "sparse_categorical_crossentropy, metrics: [accuracy]}\ndata: {train: {format: digits, "
      "count: 300}, "
      "batch_size: 10}\nsteps: 5\n");
  Process server({binary("psd"), "--ps-hosts", ps, "--worker-hosts", worker, "--task-index", "0"});
  Process chief({binary("workerd"), "--ps-hosts", ps, "--worker-hosts", worker, "--task-index", "0",
                 "--train", train},
                std::map<std::string, std::string>{}, folder_.path());
  const ProcessResult result = chief.wait(seconds(30));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("event=nothing_to_evaluate"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("data.eval"), std::string::npos) << result.err;
  EXPECT_EQ(server.wait(seconds(10)).exit_code, 0) << server.err();
}

TEST_F(ByHandTest, AnAnswerOrAResultThatStdoutDoesNotTakeIsNoSuccess) {
  const auto into_full = [this](const std::string& program, const std::string& words) {
    return Process({"/bin/sh", "-c", "exec " + binary(program) + " " + words + " >/dev/full"},
                   std::map<std::string, std::string>{}, folder_.path());
  };
  EXPECT_EQ(into_full("psd", "--help").wait(seconds(10)).exit_code, 73);
  EXPECT_EQ(into_full("workerd", "-V").wait(seconds(10)).exit_code, 73);
  const std::string file = writeCluster({.ps = 1, .workers = 1, .ports = freePorts(2)});
  Process ps = startTask(file, "ps", 0);
  const ProcessResult chief =
      into_full("workerd", "--cluster " + file + " --task 0").wait(seconds(30));
  EXPECT_EQ(chief.exit_code, 73) << chief.err;
  EXPECT_NE(chief.err.find("cannot write to stdout"), std::string::npos) << chief.err;
  EXPECT_EQ(summary()["outcome"], "done") << "the file has what stdout did not take";
  EXPECT_EQ(ps.wait(seconds(10)).exit_code, 0) << ps.err();
}

// Neither a launcher nor another chief by hand.
TEST_F(ByHandTest, TheChiefHoldsTheRunDirectory) {
  ClusterOptions endless{.steps = 100'000'000, .ports = freePorts(4)};
  const std::string file = writeCluster(endless);
  std::vector<Process> tasks = startFour(file);
  ASSERT_TRUE(tasks[kChiefTask].waitForOutput("event=progress", seconds(30)))
      << tasks[kChiefTask].err();
  const std::string other = writeCluster({.ports = freePorts(4)}, "other");
  const std::string run_dir = folder_.path() + "/runs/job";
  const ProcessResult chief =
      startTask(other, "worker", 0, {"--run-dir", run_dir}).wait(seconds(20));
  EXPECT_EQ(chief.exit_code, 69) << chief.err;
  const ProcessResult launcher = launch(other, {"--run-dir", run_dir});
  EXPECT_EQ(launcher.exit_code, 69) << launcher.err;
  for (const std::string& refusal : {chief.err, launcher.err})
    EXPECT_NE(refusal.find("is in use by workerd, pid " + std::to_string(tasks[kChiefTask].pid())),
              std::string::npos)
        << refusal;
  std::filesystem::remove_all(run_dir);
  EXPECT_TRUE(tasks[kChiefTask].waitForOutput("event=run_dir_lost", seconds(10)))
      << tasks[kChiefTask].err();
}

TEST_F(ByHandTest, JobNameOfTheOtherBinaryIsAUsageError) {
  const ProcessResult result =
      runProcess({binary("psd"), "--ps-hosts", "localhost:1", "--worker-hosts", "localhost:2",
                  "--task-index", "0", "--job-name", "worker"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("workerd"), std::string::npos) << result.err;
}

// All 24 orders of two ps and two workers, with seeded pauses of 0 to 3 seconds between the starts,
// side by side. A synchronous job has the same result in all of them, to the bit.
TEST_F(ByHandTest, EveryStartOrderGivesTheSameResult) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  struct Start {
    milliseconds at;
    std::string file, job;
    int index;
  };
  std::vector<Start> starts;
  std::vector<int> order = {0, 1, 2, 3};
  int run = 0;
  do {
    const std::string file = writeCluster({.mode = "sync", .steps = 10, .ports = freePorts(4)},
                                          "order" + std::to_string(run++));
    milliseconds at{0};
    for (const int task : order) {
      at += milliseconds(std::uniform_int_distribution<int>(0, 3000)(random));
      starts.push_back({at, file, task < 2 ? "ps" : "worker", task % 2});
    }
  } while (std::next_permutation(order.begin(), order.end()));
  ASSERT_EQ(run, 24);
  std::sort(starts.begin(), starts.end(),
            [](const Start& a, const Start& b) { return a.at < b.at; });
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Process> tasks;
  for (const Start& start : starts) {
    const auto left = std::chrono::duration_cast<milliseconds>(begin + start.at -
                                                               std::chrono::steady_clock::now());
    if (left > milliseconds(0)) pause(left);
    tasks.push_back(startTask(start.file, start.job, start.index));
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    const ProcessResult result = tasks[i].wait(seconds(60));
    EXPECT_EQ(result.exit_code, 0)
        << starts[i].file << " " << starts[i].job << "/" << starts[i].index << "\n"
        << result.err;
  }
  for (int i = 0; i < run; ++i) {
    const std::string name = "order" + std::to_string(i);
    EXPECT_EQ(summary(name)["global_step"], 10) << name;
    EXPECT_EQ(summary(name)["parameters_digest"], summary("order0")["parameters_digest"]) << name;
    EXPECT_EQ(summary(name)["final_loss"], summary("order0")["final_loss"]) << name;
  }
  EXPECT_FALSE(summary("order0")["parameters_digest"].asString().empty());
  expectNothingLeft();
}

// The orders above leave 96 ports unbound for seconds.
TEST_F(ByHandTest, PortsGivenToThisProcessAreGivenToNoOther) {
  const std::vector<int> ports = freePorts(120);
  EXPECT_FALSE(TEST_blockIsFree(ports.front()));
  EXPECT_FALSE(TEST_blockIsFree(ports.back()));
  const std::vector<int> more = freePorts(1);
  EXPECT_EQ(std::count(ports.begin(), ports.end(), more[0]), 0);
}

TEST_F(ByHandTest, AWorkerThatNeverComesIsNamedAtTheDeadline) {
  const std::string file =
      writeCluster({.top_more = "timeouts: {start_seconds: 4}\n", .ports = freePorts(4)});
  std::vector<Process> tasks;
  tasks.push_back(startTask(file, "ps", 0));
  tasks.push_back(startTask(file, "ps", 1));
  tasks.push_back(startTask(file, "worker", 0));
  for (Process& task : tasks) {
    const ProcessResult result = task.wait(seconds(20));
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(result.err.find("worker/1"), std::string::npos) << result.err;
  }
}

TEST_F(ByHandTest, APsThatNeverComesIsNamedAtTheDeadline) {
  const std::string file =
      writeCluster({.top_more = "timeouts: {start_seconds: 4}\n", .ports = freePorts(4)});
  std::vector<Process> tasks;
  tasks.push_back(startTask(file, "worker", 0));
  tasks.push_back(startTask(file, "ps", 0));
  tasks.push_back(startTask(file, "worker", 1));
  for (size_t i = 0; i < tasks.size(); ++i) {
    const ProcessResult result = tasks[i].wait(seconds(20));
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(result.err.find("ps/1"), std::string::npos) << result.err;
    if (i == 1) continue;  // ps/0 has its workers
    EXPECT_NE(result.err.find("event=waiting"), std::string::npos)
        << "says every few seconds for whom it waits";
  }
}

TEST_F(ByHandTest, HostListsInAnotherOrderAreNoticed) {
  const std::vector<int> ports = freePorts(4);
  std::vector<int> swapped = ports;
  std::swap(swapped[0], swapped[1]);
  const std::string file = writeCluster({.ports = ports});
  const std::string other = writeCluster({.ports = swapped}, "other");
  Process ps0 = startTask(file, "ps", 0);
  Process ps1 = startTask(file, "ps", 1);
  const ProcessResult result =
      startTask(other, "worker", 0, {"--set", "job=job"}).wait(seconds(20));
  EXPECT_EQ(result.exit_code, 78) << result.err;
  EXPECT_NE(result.err.find("order"), std::string::npos) << result.err;
}

// One worker has another TRAIN.yaml. The refusal names the key that differs, and both values.
TEST_F(ByHandTest, AWorkerThatWouldDoOtherWorkIsRefused) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"train.data.seed=8", "data.seed is 8, the job's is 7"},
      {"train.data.batch_size=10", "data.batch_size is 10, the job's is 20"},
      {"train.model.loss=mse",
       "model.loss is mean_squared_error, the job's is sparse_categorical_crossentropy"},
      {"train.model.layers=[flatten: , dense: {units: 10, name: softmax, activation: tanh}]",
       "activation=tanh"},
      {"train.data.train.count=601", "data.train is 601 examples of [28, 28, 1], the job's is 600"},
      {"train.replication.transfer_dtype=bfloat16",
       "replication.transfer_dtype is bfloat16, the job's is float32"},
      {"train.steps=41", "steps is 41, the job's is 40"}};
  for (const auto& [change, difference] : changes) {
    SCOPED_TRACE(change);
    const std::string file = writeCluster({.ps = 1, .ports = freePorts(3)});
    Process ps = startTask(file, "ps", 0);
    Process chief = startTask(file, "worker", 0);
    const ProcessResult result = startTask(file, "worker", 1, {"--set", change}).wait(seconds(20));
    EXPECT_EQ(result.exit_code, 78) << result.err;
    EXPECT_NE(result.err.find("worker/1's TRAIN.yaml differs from the job's, which is worker/0's"),
              std::string::npos)
        << result.err;
    EXPECT_NE(result.err.find(difference), std::string::npos) << result.err;
  }
}

// All tasks of a job that cannot start end with the reason, the ps too.
TEST_F(ByHandTest, AWorkerWithAnotherFileEndsTheJobForAllWithTheReason) {
  const std::string file = writeCluster({.ports = freePorts(4)});
  std::vector<Process> tasks;
  tasks.push_back(startTask(file, "ps", 0));
  tasks.push_back(startTask(file, "ps", 1));
  tasks.push_back(startTask(file, "worker", 0));
  tasks.push_back(startTask(file, "worker", 1, {"--set", "train.steps=300"}));
  for (Process& task : tasks) {
    const ProcessResult result = task.wait(kSoon);
    EXPECT_EQ(result.exit_code, 78) << result.err;
    EXPECT_NE(result.err.find("worker/1's TRAIN.yaml differs"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("steps is 300, the job's is 40"), std::string::npos) << result.err;
  }
}

TEST_F(ByHandTest, AChiefThatFailsEndsTheJobForAllWithTheReason) {
  const std::string file = writeCluster(
      {.steps = 100'000'000,
       .optimizer = "{gradient_descent: {learning_rate: 1.0e+6}}",
       .layers = "[flatten: , dense: {units: 30, activation: relu}, dense: {units: 30, activation: "
                 "relu}, dense: {units: 10}]",
       .ports = freePorts(4)});
  std::vector<Process> tasks = startFour(file);
  // Either worker may diverge first.
  for (Process& task : tasks) {
    const ProcessResult result = task.wait(kSoon);
    EXPECT_TRUE(result.exit_code == 1 || result.exit_code == 69) << result.exit_code << result.err;
    EXPECT_NE(result.err.find("training has diverged"), std::string::npos) << result.err;
  }
}

TEST_F(ByHandTest, AChiefWhoseStartFailsLeavesTheSummaryOfTheRunBefore) {
  const std::string file = writeCluster({.ports = freePorts(4)});
  std::vector<Process> tasks = startFour(file);
  for (Process& task : tasks) ASSERT_EQ(task.wait(seconds(30)).exit_code, 0) << task.err();
  const std::string before = folder_.read("runs/job/summary.json");
  Process alone = startTask(file, "worker", 0, {"--set", "timeouts.start_seconds=1"});
  const ProcessResult result = alone.wait(seconds(30));
  EXPECT_NE(result.exit_code, 0) << result.err;
  EXPECT_EQ(folder_.read("runs/job/summary.json"), before);
}

TEST_F(ByHandTest, WithoutTheChiefThatAPersonEndedNobodyTrainsOn) {
  const std::string file = writeCluster({.steps = 100'000'000, .ports = freePorts(4)});
  std::vector<Process> tasks = startFour(file);
  ASSERT_TRUE(tasks[kChiefTask].waitForOutput("event=progress", seconds(30)))
      << tasks[kChiefTask].err();
  tasks[kChiefTask].signal(SIGINT);
  EXPECT_EQ(tasks[kChiefTask].wait(kSoon).exit_code, 128 + SIGINT) << tasks[kChiefTask].err();
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (i == kChiefTask) continue;
    const ProcessResult result = tasks[i].wait(kSoon);
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(result.err.find("the job was ended by worker/0: it was ended by signal 2"),
              std::string::npos)
        << result.err;
  }
}

// A second cluster with the same job's name that reaches the first one's ps.
TEST_F(ByHandTest, AWorkerOfAnotherClusterTakesOverNoRank) {
  const std::vector<int> ports = freePorts(3);
  std::vector<int> others = ports;
  others[2] = freePorts(1)[0];
  const std::string file = writeCluster({.ps = 1, .ports = ports});
  const std::string other = writeCluster({.ps = 1, .ports = others}, "other");
  Process ps = startTask(file, "ps", 0);
  const ProcessResult result =
      startTask(other, "worker", 1, {"--set", "job=job"}).wait(seconds(20));
  EXPECT_EQ(result.exit_code, 78) << result.err;
  EXPECT_NE(result.err.find(
                "worker/1's cluster file has worker/1 at localhost:" + std::to_string(others[2]) +
                ", but ps/0's has it at localhost:" + std::to_string(ports[2])),
            std::string::npos)
      << result.err;
  EXPECT_EQ(ps.err().find("event=joined"), std::string::npos) << ps.err();
}

TEST_F(ByHandTest, WorkersWithDifferentModelsAreToldTheDifference) {
  const std::string file = writeCluster({.ports = freePorts(4)});
  std::vector<Process> tasks;
  tasks.push_back(startTask(file, "ps", 0));
  tasks.push_back(startTask(file, "ps", 1));
  tasks.push_back(startTask(file, "worker", 0));
  ASSERT_TRUE(tasks[0].waitForOutput("event=joined worker=worker/0", seconds(10)));
  const ProcessResult result =
      startTask(file, "worker", 1, {"--set", "train.optimizer={adam: {learning_rate: 0.5}}"})
          .wait(seconds(20));
  EXPECT_EQ(result.exit_code, 78) << result.err;
  EXPECT_NE(result.err.find("optimizer"), std::string::npos) << result.err;
}

}  // namespace dtf::testing
