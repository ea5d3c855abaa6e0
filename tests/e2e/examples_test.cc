// The programs of common/api/examples, built as anyone builds them, by meson and pkg-config, and
// run on psd --serve and workerd --serve.

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "common/base/file.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kExampleWithin = seconds(60);
constexpr auto kBuilt = seconds(240);

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class ExamplesTest : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    built_ = new TemporaryFolder;
    const std::string path = built_->path() + "/build";
    const std::string sources = environment("DTF_SOURCE_ROOT") + "/common/api/examples";
    const std::string found = environment("DTF_BUILD_ROOT") + "/meson-uninstalled";
    Process setup({"/usr/bin/env", "PKG_CONFIG_PATH=" + found, "meson", "setup", path, sources}, {},
                  built_->path());
    const ProcessResult ready = setup.wait(kBuilt);
    ASSERT_EQ(ready.exit_code, 0) << ready.out << ready.err;
    Process ninja({"/usr/bin/env", "ninja", "-C", path}, {}, built_->path());
    const ProcessResult built = ninja.wait(kBuilt);
    ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
    EXPECT_THAT(built.out, ::testing::Not(HasSubstr("warning:")));
  }
  static void TearDownTestSuite() {
    delete built_;
    built_ = nullptr;
  }

  void SetUp() override {
    const std::string file = writeCluster({.ps = 1, .workers = 2, .ports = ports_});
    for (const auto& [job, index] : {std::pair{"ps", 0}, {"worker", 0}, {"worker", 1}})
      tasks_.push_back(startTask(file, job, index, {"--serve"}));
    for (Process& task : tasks_) ASSERT_TRUE(task.waitForOutput("event=serving", kExampleWithin));
  }
  std::string target(int task) const {
    return "dtf://localhost:" + std::to_string(ports_[static_cast<size_t>(task)]);
  }
  std::string ps() const { return target(0); }
  ProcessResult run(std::vector<std::string> command) const {
    if (command[0].find('/') == std::string::npos)
      command[0] = built_->path() + "/build/" + command[0];
    return Process(std::move(command), {}, folder_.path()).wait(kExampleWithin);
  }
  std::string said(const std::vector<std::string>& command) const {
    const ProcessResult result = run(command);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result.out;
  }

  static TemporaryFolder* built_;
  const std::vector<int> ports_ = freePorts(3);
  std::vector<Process> tasks_;
};
TemporaryFolder* ExamplesTest::built_ = nullptr;

TEST_F(ExamplesTest, AStepOfOnesOwnLearnsALine) {
  EXPECT_THAT(said({"linear_regression", target(1), ps()}),
              HasSubstr("y = 3.000 x0 + -2.000 x1 + 0.500\n"));
}

// The ps is found through the worker's cluster file.
TEST_F(ExamplesTest, OneTargetIsEnough) {
  EXPECT_THAT(said({"linear_regression", target(1)}),
              HasSubstr("y = 3.000 x0 + -2.000 x1 + 0.500\n"));
}

TEST_F(ExamplesTest, AProductIsSplitOverTwoWorkers) {
  EXPECT_THAT(said({"matrix_product", target(1), target(2)}), HasSubstr("on two workers"));
}

TEST_F(ExamplesTest, ALoopEndsByItselfAndHasADerivative) {
  const std::string text = said({"doubling", target(1)});
  EXPECT_THAT(text, HasSubstr("5 %: 15 years, then 2.0789; d/d(rate) 29.70\n"));
  EXPECT_THAT(text, HasSubstr("12 %: 7 years, then 2.2107; d/d(rate) 13.82\n"));
}

TEST_F(ExamplesTest, AWorkerWithKeysIsReachedWithTheClientsKey) {
  const int port = freePorts(1)[0];
  const std::string file =
      writeCluster({.ps = 1, .workers = 1, .ports = {ports_[0], port}}, "keyed");
  const std::string keys = folder_.path() + "/keys";
  const ProcessResult made = run({binary("dtf-launch"), "keys", "init", keys, "--cluster", file});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  Process worker = startTask(file, "worker", 0, {"--serve", "--keys=" + keys});
  ASSERT_TRUE(worker.waitForOutput("event=serving", kExampleWithin)) << worker.err();
  const std::string target = "dtf://localhost:" + std::to_string(port);
  EXPECT_THAT(said({"doubling", target, keys}), HasSubstr("5 %: 15 years"));
  EXPECT_THAT(said({"doubling", target + "/worker/0", keys}), HasSubstr("5 %: 15 years"));
  const ProcessResult other = run({"doubling", target + "/worker/1", keys});
  EXPECT_THAT(other.err, HasSubstr("its certificate is for worker/0, worker/1 is wanted"));
  const ProcessResult without = run({"doubling", target});
  EXPECT_NE(without.exit_code, 0);
  EXPECT_THAT(without.err, HasSubstr("it has keys, and this side has none"));
}

TEST_F(ExamplesTest, AClientSpansTheWorkersInSyncAndInAsync) {
  EXPECT_THAT(said({"in_graph_replication", ps(), target(1), target(2)}),
              AllOf(HasSubstr("in sync: 2 copies are at most "), HasSubstr("in async: ")));
}

// All that is drawn follows from the seed: here and on a worker the same.
TEST_F(ExamplesTest, APolicyFollowsItsGradient) {
  const std::string text = said({"policy_gradient"});
  EXPECT_THAT(text, HasSubstr("; probabilities 0.25 0.25 0.25 0.25\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("step 300: .*probabilities 0.0. 0.0. 0.9. 0.0."));
  EXPECT_EQ(said({"policy_gradient", target(1)}), text);
}

TEST_F(ExamplesTest, ActorsReadAndALearnerWrites) {
  EXPECT_THAT(said({"actors_and_learner", ps()}), HasSubstr("lever 2 is liked best"));
}

// Two producers, two consumers and a process that closes the queue.
TEST_F(ExamplesTest, JobsInAQueueAreWorkedOffUntilItIsClosed) {
  std::vector<Process> consumers;
  const std::string program = built_->path() + "/build/job_queue";
  for (int i = 0; i < 2; ++i)
    consumers.push_back(Process({program, ps(), "consume"}, {}, folder_.path()));
  std::thread other([this] { said({"job_queue", ps(), "produce", "100", "20"}); });
  said({"job_queue", ps(), "produce", "1", "20"});
  other.join();
  EXPECT_EQ(said({"job_queue", ps(), "close"}), "");
  std::string all;
  for (Process& consumer : consumers) {
    const ProcessResult result = consumer.wait(kExampleWithin);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("no more: the queue 'jobs' is closed and has 0 of 1"));
    all += result.out;
  }
  for (const int first : {1, 100})
    for (int i = first; i < first + 20; ++i)
      EXPECT_THAT(all, HasSubstr("the root of " + std::to_string(i) + " is "));
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 2 * 20 + 2) << "each job once: " << all;
  const ProcessResult late = run({"job_queue", ps(), "produce", "1", "1"});
  EXPECT_EQ(late.exit_code, 66);
  EXPECT_THAT(late.err, HasSubstr("the queue 'jobs' is closed: nothing enters it any more"));
}

TEST_F(ExamplesTest, AConsumerThatIsKilledWhileItWaitsTakesNothing) {
  Process consumer({built_->path() + "/build/job_queue", ps(), "consume"}, {}, folder_.path());
  said({"job_queue", ps(), "produce", "4", "1"});
  ASSERT_TRUE(consumer.waitForOutput("the root of 4 is 2.000", kExampleWithin)) << consumer.err();
  consumer.signal(SIGKILL);
  consumer.wait(kExampleWithin);
  said({"job_queue", ps(), "produce", "9", "1"});
  said({"job_queue", ps(), "close"});
  EXPECT_THAT(said({"job_queue", ps(), "consume"}), HasSubstr("the root of 9 is 3.000"));
}

// A C and a Python (ctypes) client share a variable that outlives each of them.
TEST_F(ExamplesTest, ACounterOnAParameterServerIsSharedByClientsAndOutlivesThem) {
  said({"remote_counter", ps(), "0", "0"});  // sets it to 0
  EXPECT_EQ(said({"remote_counter", ps(), "2.5"}), "2.5\n");
  const std::string library = environment("DTF_BUILD_ROOT") + "/common/api/libdtf.so";
  const std::string python =
      environment("DTF_SOURCE_ROOT") + "/common/api/examples/remote_counter.py";
  EXPECT_EQ(said({"/usr/bin/env", "python3", python, library, ps(), "4"}), "6.5\n");
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i)
    clients.emplace_back([this] { said({"remote_counter", ps(), "1", "100"}); });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(said({"remote_counter", ps(), "1"}), "307.5\n");
}

// The same here and on a worker, and as dtf-launch predict says.
TEST_F(ExamplesTest, AModelThatWasTrainedIsApplied) {
  ClusterOptions options{.steps = 100};
  options.train_more = "  checkpoint: {every_seconds: 600}\n";
  const std::string file = writeCluster(options, "trained");
  EXPECT_EQ(run({"apply_model", file, "x"}).exit_code, 65) << "there is no checkpoint yet";
  ASSERT_EQ(launch(file).exit_code, 0);
  std::string image;
  for (int i = 0; i < 28 * 28; ++i) image += static_cast<char>(i % 28 == 14 ? 255 : i % 50);
  const std::string raw = folder_.write("image.raw", image);
  const std::string header("\0\0\x08\x03\0\0\0\x01\0\0\0\x1c\0\0\0\x1c", 16);
  const std::string idx = folder_.write("image.idx", header + image);
  const std::string here = said({"apply_model", file, raw});
  EXPECT_EQ(here, said({"apply_model", file, raw, target(1)}));
  const std::string predicted = said({environment("DTF_BUILD_ROOT") + "/launcher/dtf-launch",
                                      "predict", file, "--input", idx, "--json"});
  const Json line = Json::parse(predicted);
  const int64_t predicted_class = std::stoi(here.substr(0, 1));
  EXPECT_EQ(line["class"], predicted_class) << predicted;
  EXPECT_NEAR(line["probabilities"][static_cast<size_t>(predicted_class)].asDouble(),
              std::stod(here.substr(2)), 1e-6)  // the digits that are printed
      << predicted;
}

// A run that went on has the bits of an undisturbed one, may go on elsewhere, and dtf-launch
// exports it.
TEST_F(ExamplesTest, ATrainingGoesOnFromItsCheckpointWithTheSameBits) {
  const std::string one = folder_.path() + "/runs/digits/checkpoints";
  const std::string two = folder_.path() + "/other";
  EXPECT_THAT(said({"softmax_digits", one, "60"}), HasSubstr("saved " + one + "/step-60\n"));
  const std::string text = said({"softmax_digits", one, "150"});
  EXPECT_THAT(text, AllOf(HasSubstr("going on from " + one + "/step-60\n"),
                          HasSubstr("accuracy 1.00"), HasSubstr("/step-150\n")));
  said({"softmax_digits", two, "150"});
  const std::string shard = "/step-150/shard-0-of-1.safetensors";
  EXPECT_EQ(readFile(one + shard, 1 << 20), readFile(two + shard, 1 << 20));
  EXPECT_THAT(said({"softmax_digits", two, "200", target(1)}),
              AllOf(HasSubstr("going on from " + two + "/step-150\n"), HasSubstr("accuracy 1.00"),
                    HasSubstr("/step-200\n")));
  const std::string file = folder_.write(
      "digits.yaml",
      "job: digits\nrun_dir: " + folder_.path() +
          "/runs/digits\ncluster: {ps: [\"localhost:auto\"], worker: [\"localhost:auto\"]}\n"
          "train:\n  model: {input: {shape: [28, 28, 1]}, layers: [flatten: , dense: {units: 10, "
          "name: softmax}], loss: sparse_categorical_crossentropy}\n"
          "  optimizer: {adam: {}}\n  steps: 200\n");
  EXPECT_THAT(said({environment("DTF_BUILD_ROOT") + "/launcher/dtf-launch", "export", file, "--to",
                    folder_.path() + "/digits.safetensors"}),
              HasSubstr("step 150: 2 variables in "));
}

// A row may give its columns in any order.
TEST_F(ExamplesTest, AModelOfATableIsAppliedByTheNamesOfItsColumns) {
  std::string table = "width,height,kind\n";
  for (int i = 0; i < 40; ++i) {
    const bool is_tall = i % 2 == 1;
    table += std::to_string(is_tall ? 1 : 4) + "." + std::to_string(i % 7) + "," +
             std::to_string(is_tall ? 5 : 2) + "." + std::to_string(i % 5) +
             (is_tall ? ",tall\n" : ",wide\n");
  }
  folder_.write("table.csv", table);
  const std::string file = folder_.write(
      "table.yaml",
      "job: table\nrun_dir: " + folder_.path() +
          "/runs/table\ncluster: {ps: [\"localhost:auto\"], worker: [\"localhost:auto\"]}\n"
          "train:\n  model: {input: {shape: [2]}, layers: [dense: {units: 2}], "
          "loss: sparse_categorical_crossentropy}\n"
          "  data: {train: {format: csv, files: [table.csv], label_column: kind, "
          "class_names: [wide, tall]}, batch_size: 10}\n"
          "  optimizer: {adam: {learning_rate: 0.05}}\n  steps: 200\n"
          "  checkpoint: {every_seconds: 600}\n");
  ASSERT_EQ(launch(file).exit_code, 0);
  const std::string tall = said({"predict_row", file, "width=1.2", "height=5.5"});
  EXPECT_THAT(tall, ::testing::StartsWith("tall "));
  EXPECT_EQ(said({"predict_row", file, "height=5.5", "width=1.2"}), tall);
  EXPECT_THAT(said({"predict_row", file, "height=1.2", "width=5.5"}),
              ::testing::StartsWith("wide "));
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"width=1.2"}, "trained on width, height"},
      {{"width=1.2", "height=5.5", "depth=3"}, "trained on width, height"},
      {{"width=", "height=5.5"}, "'width=' is not COLUMN=NUMBER"},
      {{"", "height=5.5"}, "'' is not COLUMN=NUMBER"}};
  for (const auto& [row, why] : wrong) {
    std::vector<std::string> command = {"predict_row", file};
    command.insert(command.end(), row.begin(), row.end());
    const ProcessResult refused = run(command);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(why));
  }
}

// Its variables on the ps, its gradients on a worker, and another graph that evaluates them.
TEST_F(ExamplesTest, AModelOfAFileIsTrainedByItsSignature) {
  const std::string file = writeCluster({.steps = 100}, "signature");
  const std::string text = said({"train_model", file, target(1)});
  EXPECT_THAT(text, ::testing::ContainsRegex("step 0: loss [1-9]"));
  EXPECT_THAT(text, ::testing::ContainsRegex("step 100: loss 0[.]0"));
  EXPECT_THAT(text, HasSubstr("accuracy 1.00\n"));
}

// With ps, and without: then the workers hold the parameters.
TEST_F(ExamplesTest, AJobIsWatchedWhileItTrains) {
  for (const int ps_tasks : {2, 0}) {
    SCOPED_TRACE(ps_tasks);
    ClusterOptions options{.ps = ps_tasks, .mode = "sync", .steps = 1'000'000};
    const std::string file = writeCluster(options, "watched" + std::to_string(ps_tasks));
    Process job({binary("dtf-launch"), file}, unhurried(), folder_.path());
    const std::string text = said({"watch_job", file, "0.05", "20"});
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20) << text;
    EXPECT_THAT(text, AllOf(HasSubstr("softmax/weights "), HasSubstr("softmax/biases ")));
    std::vector<uint64_t> steps;
    for (size_t at = 0; (at = text.find("step ", at)) != std::string::npos; at += 5)
      steps.push_back(std::stoull(text.substr(at + 5)));
    ASSERT_FALSE(steps.empty());
    EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end())) << text;
    EXPECT_LT(steps.front(), steps.back()) << text;
    job.signal(SIGTERM);
    EXPECT_EQ(job.wait(kExampleWithin).exit_code, 128 + SIGTERM) << job.err();
    const ProcessResult after = run({"watch_job", file, "1", "1"});
    EXPECT_EQ(after.exit_code, 69) << after.err;
    EXPECT_THAT(after.err, HasSubstr(ps_tasks > 0 ? "ps/0" : "worker/0"));
  }
}

// The program of TensorFlow's four flags, once for each task of a cluster.
class FourFlagsTest : public ExamplesTest {
 protected:
  void SetUp() override {}  // it is its own cluster
  std::vector<std::string> command(const std::string& job, int index, const std::string& steps) {
    const auto host = [&](size_t i) { return "localhost:" + std::to_string(ports_[i]); };
    return {built_->path() + "/build/parameter_server",  "--ps_hosts=" + host(0),
            "--worker_hosts=" + host(1) + "," + host(2), "--job_name=" + job,
            "--task_index=" + std::to_string(index),     "--steps=" + steps};
  }
  void start(const std::string& job, int index, const std::string& steps) {
    tasks_.push_back(Process(command(job, index, steps), {}, folder_.path()));
    ASSERT_TRUE(tasks_.back().waitForOutput("serving dtf://localhost:", kExampleWithin))
        << tasks_.back().err();
  }
};

TEST_F(FourFlagsTest, MakeAPsAndWorkersThatTrainInAsync) {
  start("worker", 1, "400");  // in any order
  start("worker", 0, "400");
  start("ps", 0, "400");
  const ProcessResult other = tasks_[0].wait(kExampleWithin);
  const ProcessResult chief = tasks_[1].wait(kExampleWithin);
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(chief.exit_code, 0) << chief.err;
  EXPECT_THAT(other.out, HasSubstr("worker/1 is done"));
  EXPECT_THAT(chief.out, ::testing::ContainsRegex("accuracy 0[.][89]")) << chief.out;
  tasks_[2].signal(SIGTERM);
  const ProcessResult ps = tasks_[2].wait(kExampleWithin);
  EXPECT_EQ(ps.exit_code, 0) << ps.err;
  EXPECT_THAT(ps.out, HasSubstr("ps/0 received SIGTERM\n"));
}

TEST_F(FourFlagsTest, NameAPsThatIsKilled) {
  start("ps", 0, "0");
  start("worker", 0, "1000000000");
  start("worker", 1, "1000000000");
  for (size_t worker : {1, 2})
    ASSERT_TRUE(tasks_[worker].waitForOutput("global step ", kExampleWithin));
  tasks_[0].signal(SIGKILL);
  for (size_t worker : {1, 2}) {
    const ProcessResult ended = tasks_[worker].wait(kExampleWithin);
    EXPECT_EQ(ended.exit_code, 69) << ended.err;
    // Its client has lost it, or the client's own server, which sends it gradients.
    EXPECT_THAT(ended.err, ::testing::ContainsRegex("parameter_server: error: .*ps/0 .localhost:" +
                                                    std::to_string(ports_[0]) + ".*lost"));
  }
}

TEST_F(FourFlagsTest, AreCheckedAndTheMistakeNamed) {
  start("ps", 0, "0");
  const ProcessResult again = run(command("ps", 0, "0"));
  EXPECT_EQ(again.exit_code, 69);
  EXPECT_THAT(again.err, HasSubstr(std::to_string(ports_[0])));
  EXPECT_THAT(run(command("chief", 0, "0")).err, HasSubstr("unknown job 'chief'"));
  std::vector<std::string> unknown = command("ps", 0, "0"), no_number = unknown;
  unknown.push_back("--stps=3");
  EXPECT_THAT(run(unknown).err, HasSubstr("there is no flag --stps"));
  no_number[4] = "--task_index=x";
  EXPECT_THAT(run(no_number).err, HasSubstr("--task_index=x: give a whole number"));
  const ProcessResult beyond = run(command("worker", 2, "0"));
  EXPECT_EQ(beyond.exit_code, 78);
  EXPECT_THAT(beyond.err, HasSubstr("there is no worker/2: the cluster has 2 tasks of worker"));
  // This worker's cluster has one worker, the ps's has two.
  std::vector<std::string> swapped = command("worker", 0, "10");
  swapped[2] = "--worker_hosts=localhost:" + std::to_string(ports_[1]);
  const ProcessResult other = run(swapped);
  EXPECT_EQ(other.exit_code, 78) << other.err;
  EXPECT_THAT(other.err, HasSubstr("were started with different clusters"));
}

TEST_F(ExamplesTest, WhoeverIsWrongIsToldWhat) {
  EXPECT_EQ(run({"remote_counter"}).exit_code, 2);
  const ProcessResult nobody = run({"linear_regression", ps(), "dtf://here"});
  EXPECT_EQ(nobody.exit_code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("linear_regression: error: "));
  // The cluster file of the worker has one ps.
  const ProcessResult elsewhere =
      run({"train_model", writeCluster({.steps = 100}, "wrong"), target(1), "2"});
  EXPECT_EQ(elsewhere.exit_code, 78) << elsewhere.err;
  EXPECT_THAT(elsewhere.err, HasSubstr("/job:ps/task:1"));
  const ProcessResult twice = run({"matrix_product", target(1), target(1)});
  EXPECT_EQ(twice.exit_code, 78) << twice.err;
}

}  // namespace
}  // namespace dtf::testing
