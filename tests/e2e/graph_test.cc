// dtf-launch graph: graphs written op by op, run on psd --serve and workerd --serve.

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class GraphTest : public ClusterTest {
 protected:
  void start() {
    for (const auto& [job, index] : {std::pair{"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}})
      tasks_.push_back(startTask(file_, job, index, {"--serve"}));
    for (Process& task : tasks_) ASSERT_TRUE(task.waitForOutput("event=serving", seconds(30)));
  }
  ProcessResult run(const std::string& graph, std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {binary("dtf-launch"), "graph", file_, "--graph", graph};
    command.insert(command.end(), more.begin(), more.end());
    return runProcess(command, seconds(60));
  }
  std::string write(const std::string& text) const {
    const std::string path = folder_.path() + "/graph.yaml";
    std::ofstream(path) << text;
    return path;
  }

  const std::string example_ =
      std::string(std::getenv("DTF_SOURCE_ROOT")) + "/configs/graphs/linear_regression.yaml";
  const std::string classifier_ =
      std::string(std::getenv("DTF_SOURCE_ROOT")) + "/configs/graphs/softmax_adam.yaml";
  std::string file_ = writeCluster({.ps = 2, .workers = 2, .ports = freePorts(4)});
  std::vector<Process> tasks_;
};

TEST_F(GraphTest, TheExampleLearns) {
  start();
  const ProcessResult result = run(example_, {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<double> losses;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const auto event = Json::parse(line);
    EXPECT_EQ(event["event"], "step");
    EXPECT_EQ(event["step"], losses.size() + 1);
    losses.push_back(event["fetches"]["loss"][0].asDouble());
  }
  ASSERT_EQ(losses.size(), 200u);
  EXPECT_GT(losses.front(), 0.1);
  EXPECT_LT(losses.back(), losses.front() / 1000);
  const ProcessResult again = run(example_);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("step 20  loss "), HasSubstr("step 200  loss ")));
}

TEST_F(GraphTest, ALoopEndsWhenItIsNearEnough) {
  start();
  const std::string newton =
      std::string(std::getenv("DTF_SOURCE_ROOT")) + "/configs/graphs/newton.yaml";
  const ProcessResult result = run(newton, {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto fetches = Json::parse(result.out)["fetches"];
  EXPECT_NEAR(fetches["root:0"][0].asDouble(), std::sqrt(2.0), 1e-6);
  EXPECT_EQ(fetches["root:1"][0], 4);  // 1, 1.5, 1.4167, 1.414216, 1.41421356
  const ProcessResult planned = run(newton, {"--dry-run"});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_NE(planned.out.find("root"), std::string::npos) << planned.out;
}

// Loss, accuracy and Adam written in ops; each step draws examples of its own.
TEST_F(GraphTest, AClassifierWithItsOwnOptimizerLearns) {
  start();
  const ProcessResult result = run(classifier_, {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::pair<double, double>> steps;  // loss and accuracy
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const auto fetches = Json::parse(line)["fetches"];
    steps.emplace_back(fetches["loss"][0].asDouble(), fetches["accuracy"][0].asDouble());
  }
  ASSERT_EQ(steps.size(), 100u);
  EXPECT_NEAR(steps.front().first, std::log(3), 1e-5) << "nothing is known yet";
  EXPECT_NE(steps[1].first, steps[2].first);
  double accuracy = 0;
  for (size_t i = steps.size() - 10; i < steps.size(); ++i) accuracy += steps[i].second / 10;
  EXPECT_GT(accuracy, 0.95);
  EXPECT_LT(steps.back().first, 0.3);
}

TEST_F(GraphTest, AnotherGraphsVariableOfTheSameNameIsInItsWayUntilItIsDropped) {
  start();
  const auto graph = [this](const char* shape) {
    return write(std::string("ops:\n  - Variable: {name: w, shape: ") + shape +
                 ", initializer: ones}\nrun: {fetches: [w]}\n");
  };
  EXPECT_THAT(run(graph("[2]")).out, HasSubstr("step 1  w 1 1\n"));
  const ProcessResult refused = run(graph("[3]"));
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("'w'"), HasSubstr("float32[2]")));
  EXPECT_THAT(run(graph("[3]"), {"--fresh"}).out, HasSubstr("step 1  w 1 1 1\n"));
}

TEST_F(GraphTest, PlacementIsShownWithoutTasks) {
  const ProcessResult result = run(example_, {"--dry-run"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto line = [&](const std::string& begin) {
    const size_t at = result.out.find(begin);
    return at == std::string::npos ? "" : result.out.substr(at, result.out.find('\n', at) - at);
  };
  EXPECT_THAT(line("Variable           w "), HasSubstr("/job:ps/replica:0/task:0/device:CPU:0"));
  EXPECT_THAT(line("AssignSub          update_b "), HasSubstr("/job:ps/replica:0/task:1"));
  EXPECT_THAT(line("MatMul             product "), HasSubstr("/job:worker/replica:0/task:1"));
  EXPECT_THAT(line("MatMul             y "), HasSubstr("/job:worker/replica:0/task:0"));
  EXPECT_THAT(result.out, HasSubstr("  sends w:0 to worker/1, 12 B\n"));
  const auto json = Json::parse(run(example_, {"--dry-run", "--json"}).out);
  EXPECT_EQ(json["ops"][0]["name"], "x");
  EXPECT_EQ(json["parts"].size(), 4u);
  EXPECT_THAT(run(example_, {"--dry-run", "--dot"}).out, ::testing::StartsWith("digraph step {"));
  EXPECT_EQ(run(example_, {"--dot"}).exit_code, 2);
}

// The spans of a timeline, by "task/name".
std::map<std::string, Json> spansByName(const Json& timeline) {
  std::map<int, std::string> tasks;
  std::map<std::string, Json> spans;
  for (const auto& event : timeline["traceEvents"])
    if (event["name"] == "process_name") tasks[event.intAt("pid")] = event["args"].stringAt("name");
  for (const auto& event : timeline["traceEvents"])
    if (event["ph"] == "X")
      spans[tasks.at(event.intAt("pid")) + " " + event.stringAt("name")] = event;
  return spans;
}

TEST_F(GraphTest, ATimelineHasWhatEveryTaskDidInOneStep) {
  start();
  const std::string file = folder_.path() + "/step.json";
  const ProcessResult result = run(example_, {"--timeline", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("step 200  loss "));
  const auto timeline = Json::parse(folder_.read("step.json"));
  const auto spans = spansByName(timeline);
  for (const char* name :
       {"ps/0 run part", "ps/1 run part", "worker/0 run part", "worker/1 run part", "worker/0 y",
        "worker/1 product", "ps/0 update_w", "ps/1 update_b", "worker/1 _Recv w:0"})
    EXPECT_TRUE(spans.contains(name)) << name;
  EXPECT_EQ(spans.at("worker/1 product")["args"]["step"], 2);
  EXPECT_EQ(spans.at("worker/1 product")["cat"], "op");
  EXPECT_EQ(spans.at("worker/1 _Recv w:0")["cat"], "receive");
  const auto begin = [&](const char* name) { return spans.at(name)["ts"].asDouble(); };
  EXPECT_LT(begin("worker/1 run part"), begin("worker/1 product"));
  EXPECT_LT(begin("worker/1 product"), begin("ps/0 update_w")) << "one clock";
  EXPECT_EQ(timeline["otherData"]["spans_dropped"], 0);
  EXPECT_EQ(timeline["otherData"]["tasks"].size(), 4u);
  ASSERT_EQ(run(example_, {"--timeline", file, "--timeline-step", "7"}).exit_code, 0);
  EXPECT_EQ(Json::parse(folder_.read("step.json"))["otherData"]["step"], 7);
}

// Nothing has run then, and no variable has another value.
TEST_F(GraphTest, ATimelineThatCantBeWrittenIsSaidBeforeTheFirstStep) {
  start();
  const std::string counter = write(R"(
ops:
  - Variable: {name: count, shape: [1], initializer: zeros, device: /job:ps/task:1}
  - Const: {name: one, dtype: float32, shape: [1], value: 1}
  - AssignAdd: {name: counted, inputs: [count, one]}
run: {steps: 3, fetches: [counted]}
)");
  const std::string nowhere = folder_.path() + "/no/step.json";
  const ProcessResult result = run(counter, {"--timeline", nowhere});
  EXPECT_EQ(result.exit_code, 73);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, ::testing::StartsWith(nowhere + ": error: there is no folder "));
  const ProcessResult late = run(counter, {"--timeline", "step.json", "--timeline-step", "4"});
  EXPECT_EQ(late.exit_code, 2);
  EXPECT_EQ(late.err, "step.json: error: --timeline-step 4: the graph has the steps 1 to 3\n");
  EXPECT_EQ(run(counter, {"--timeline", nowhere, "--dry-run"}).exit_code, 2);
}

// A worker's second device is there for graphs, too, in a plan as in a step.
TEST_F(GraphTest, TowersRunOnTheDevicesOfAWorker) {
  file_ = writeCluster(
      {.ps = 1, .workers = 1, .worker_more = ", devices: [cpu:0, cpu:1]", .ports = freePorts(2)},
      "towers");
  const std::string towers =
      std::string(std::getenv("DTF_SOURCE_ROOT")) + "/configs/graphs/towers.yaml";
  const auto plan = Json::parse(run(towers, {"--dry-run", "--json"}).out);
  std::map<std::string, std::string> devices;
  for (const auto& op : plan["ops"]) devices[op.stringAt("name")] = op.stringAt("device");
  EXPECT_EQ(devices["tower0/loss"], "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(devices["tower1/loss"], "/job:worker/replica:0/task:0/device:CPU:1");
  EXPECT_EQ(devices["gradients/tower1/prediction_grad/MatMul"],
            "/job:worker/replica:0/task:0/device:CPU:1");
  for (const char* job : {"ps", "worker"}) tasks_.push_back(startTask(file_, job, 0, {"--serve"}));
  for (Process& task : tasks_) ASSERT_TRUE(task.waitForOutput("event=serving", seconds(30)));
  const ProcessResult result = run(towers, {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<double> losses;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);)
    losses.push_back(Json::parse(line)["fetches"]["loss"][0].asDouble());
  ASSERT_EQ(losses.size(), 200u);
  EXPECT_GT(losses.front(), 0.1);
  EXPECT_LT(losses.back(), losses.front() / 1000);
}

TEST_F(GraphTest, MistakesNameTheOpItsLineAndTheDevicesThereAre) {
  const std::string head = "ops:\n  - Const: {name: c, dtype: float32, shape: [2], value: 1}\n";
  ProcessResult result = run(write(head + "  - Relu: {name: y, inputs: [c], device: /task:7}\n"));
  EXPECT_EQ(result.exit_code, 78);
  EXPECT_THAT(result.err, AllOf(HasSubstr("graph.yaml:3:5: error: node 'y' (Relu)"),
                                HasSubstr("/job:ps/replica:0/task:1/device:CPU:0")));
  result = run(write(head + "  - Relu: {name: y, inputs: [c], device: /gpu:0}\n"));
  EXPECT_EQ(result.exit_code, 78);
  EXPECT_THAT(result.err, HasSubstr("GPU"));
  result = run(write(head + "  - Relu: {name: y, inputs: [c], device: /gpu:0}\n"
                            "soft_placement: true\n"),
               {"--dry-run"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  result = run(write(head + "  - Relu: {name: y, inputs: [d]}\n"));
  EXPECT_EQ(result.exit_code, 78);
  EXPECT_THAT(result.err, AllOf(HasSubstr("graph.yaml:3:"), HasSubstr("no node 'd'")));
  EXPECT_EQ(run(write(head)).exit_code, 78) << "it says not what to run";
  EXPECT_EQ(run(folder_.path() + "/none.yaml").exit_code, 78);
}

// y = 2 a - b, from a table, in batches; the rate is a number of the file.
TEST_F(GraphTest, StepsAreFedFromTheFileAndItsData) {
  start();
  std::string table = "a,b,y\n";
  for (int i = 0; i < 40; ++i) {
    const int a = i % 5 - 2, b = i % 8 - 4;
    table += std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(2 * a - b) + "\n";
  }
  folder_.write("table.csv", table);
  const auto graph = [this](const std::string& run, const char* batch = "16") {
    return write("ops:\n  - Placeholder: {name: x, dtype: float32, shape: [" + std::string(batch) +
                 ", 2]}\n" + R"(
  - Placeholder: {name: y, dtype: float32, shape: [16, 1]}
  - Placeholder: {name: rate, dtype: float32, shape: []}
  - Variable: {name: w, shape: [2, 1], initializer: zeros, device: /job:ps/task:0}
  - MatMul: {name: product, inputs: [x, w]}
  - SquaredDifference: {name: errors, inputs: [product, y]}
  - Mean: {name: loss, inputs: [errors]}
  - gradients: {loss: loss, of: [w]}
  - Mul: {name: delta, inputs: [gradient/w, rate]}
  - AssignSub: {name: update, inputs: [w, delta]}
run:
  targets: [update]
  steps: 100
)" + run);
  };
  const std::string data = "  data: {format: csv, files: [table.csv], target_columns: [y]}\n";
  const std::string feeds = "  feeds: {x: features, y: labels, rate: 0.05}\n";
  const std::string file = graph("  fetches: [loss, w]\n" + feeds + data);
  const ProcessResult result = run(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("  w 2 -1\n"));
  EXPECT_EQ(run(file, {"--dry-run"}).exit_code, 0);
  EXPECT_EQ(run(file).out, result.out) << "the order of the data follows from the seed";
  const ProcessResult wrong = run(graph("  fetches: [loss]\n" + feeds + data, "8"));
  EXPECT_EQ(wrong.exit_code, 78);
  EXPECT_THAT(wrong.err, HasSubstr("must be the same, or one of them 1"));
  const ProcessResult missing =
      run(graph("  fetches: [loss]\n  feeds: {x: features, rate: 1}\n" + data));
  EXPECT_THAT(missing.err, HasSubstr("'y'"));
  const ProcessResult labels =
      run(graph("  fetches: [loss]\n  feeds: {x: labels, y: 0, rate: 1}\n" + data));
  EXPECT_EQ(labels.exit_code, 78);
  EXPECT_THAT(labels.err,
              AllOf(HasSubstr("graph.yaml:17:"), HasSubstr("'x' is float32[16, 2], the labels of"),
                    HasSubstr("make it float32[16, 1]")));
  EXPECT_EQ(run(folder_.path() + "/graph.yaml", {"--dry-run"}).err, labels.err)
      << "without a step, too, the data is looked at";
  const ProcessResult none =
      run(graph("  fetches: [loss]\n  feeds: {x: features, y: 0, rate: 1}\n"
                "  data: {format: csv, files: [no.csv], label_column: y}\n"));
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(none.err, AllOf(HasSubstr("graph.yaml:18:"), HasSubstr("no.csv")));
}

TEST_F(GraphTest, WithoutAGraphItSaysHowToNameOne) {
  const ProcessResult result = runProcess({binary("dtf-launch"), "graph", file_}, seconds(30));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--graph is missing: name a GRAPH.yaml"));
}

}  // namespace
}  // namespace dtf::testing
