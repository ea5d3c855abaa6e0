// Training by ops alone, on psd --serve and workerd --serve: forward pass, gradients, and an
// assignment for each variable. Clients side by side, and clients that are killed.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <thread>

#include "common/base/random.h"
#include "common/engine/session.h"
#include "common/graph/autodiff.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/wire/session/remote_tasks.h"
#include "tests/e2e/assign_graph.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {
namespace {

using graph::Output;
using std::chrono::seconds;
using ::testing::FloatNear;

constexpr auto kSoon = seconds(30);
constexpr int64_t kExamples = 64;

// y = 2 x0 - 3 x1 + x2 + 0.5, by gradient descent.
class LinearRegression {
 public:
  // w is on ps/0, b on ps/1, everything else on the worker.
  explicit LinearRegression(const std::string& worker) {
    graph::Builder b(graph_);
    Output w, bias;
    {
      const auto ps0 = b.deviceScope("/job:ps/task:0");
      w = b.variable("w", {3, 1}, "zeros");
      const auto ps1 = b.deviceScope("/job:ps/task:1");
      bias = b.variable("b", {1}, "zeros");
    }
    const auto device = b.deviceScope(worker);
    b.node("Assign", {w, b.constant({3, 1}, 0)}, {}, "init_w");
    b.node("Assign", {bias, b.constant({1}, 0)}, {}, "init_b");
    const Output x = b.placeholder("x", DType::kFloat32, {kExamples, 3});
    const Output y = b.placeholder("y", DType::kFloat32, {kExamples, 1});
    const Output loss = b.mean(b.squaredDifference(b.biasAdd(b.matMul(x, w), bias), y));
    loss_ = graph_.node(loss.node).name;
    const std::vector<Output> variables = {w, bias};
    const std::vector<Output> gradients = graph::addGradients(graph_, loss, variables);
    for (size_t i = 0; i < variables.size(); ++i)
      steps_.push_back(
          graph_.node(b.node("AssignSub", {variables[i], b.scale(gradients[i], 0.1)})).name);
  }

  const graph::Graph& graph() const { return graph_; }
  void initialise(engine::Session& session) const {
    session.run({}, {}, std::vector<std::string>{"init_w", "init_b"});
  }
  // One step on a batch drawn from `seed`. Returns the loss before the step.
  float train(engine::Session& session, uint64_t seed) const {
    Random random(seed);
    Tensor x(DType::kFloat32, {kExamples, 3}), y(DType::kFloat32, {kExamples, 1});
    for (size_t i = 0; i < kExamples; ++i) {
      float* const row = x.as<float>().data() + 3 * i;
      for (int k = 0; k < 3; ++k) row[k] = random.uniform(-1, 1);
      y.as<float>()[i] = 2 * row[0] - 3 * row[1] + row[2] + 0.5f;
    }
    const std::vector<engine::Feed> feeds = {{"x", &x}, {"y", &y}};
    return session.run(feeds, std::vector{loss_}, steps_).at(0).as<float>()[0];
  }
  static std::vector<float> learnt(engine::Session& session) {
    std::vector<float> all;
    for (const Tensor& value : session.run({}, std::vector<std::string>{"w", "b"}))
      all.insert(all.end(), value.as<float>().begin(), value.as<float>().end());
    return all;
  }

 private:
  graph::Graph graph_{graph::standardOps()};
  std::string loss_;
  std::vector<std::string> steps_;
};

bool isWhole(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [&](float each) { return each == values[0]; });
}

const std::vector<float> kTruth = {2, -3, 1, 0.5};

class AssignTest : public ClusterTest {
 protected:
  void start() {
    const std::string file = writeCluster({.ps = 2, .workers = 2, .ports = ports_});
    for (const auto& [job, index] : {std::pair{"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}})
      tasks_.push_back(startTask(file, job, index, {"--serve"}));
    for (Process& task : tasks_) ASSERT_TRUE(task.waitForOutput("event=serving", kSoon));
  }
  std::string target(size_t task) const {
    return "dtf://localhost:" + std::to_string(ports_[task]);
  }
  std::unique_ptr<engine::Session> open(const graph::Graph& graph,
                                        const std::vector<size_t>& tasks) const {
    wire::RemoteTasksOptions options{.targets = {}, .limits = {.step_max = kSoon}};
    for (const size_t task : tasks) options.targets.push_back(target(task));
    return std::make_unique<engine::Session>(graph, std::make_unique<wire::RemoteTasks>(options));
  }

  const std::vector<int> ports_ = freePorts(4);
  std::vector<Process> tasks_;
};

TEST_F(AssignTest, LinearRegressionLearnsTheSameAsInOneProcess) {
  start();
  const LinearRegression model("/job:worker/task:0");
  const auto session = open(model.graph(), {2, 0, 1});
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels);
  std::vector<engine::SessionDevice> here;
  std::array<runtime::CpuDevice, 3> cpus{runtime::CpuDevice(0), runtime::CpuDevice(1),
                                         runtime::CpuDevice(2)};
  for (const TaskId task : {TaskId{JobKind::kWorker, 0}, {JobKind::kPs, 0}, {JobKind::kPs, 1}})
    here.push_back({graph::fullDevice(task), &cpus[here.size()], &kernels});
  engine::Session local(model.graph(), here);
  model.initialise(*session);
  model.initialise(local);
  float first = 0, last = 0;
  for (uint64_t step = 0; step < 150; ++step) {
    last = model.train(*session, step);
    if (step == 0) first = last;
    EXPECT_NEAR(model.train(local, step), last, 1e-4 * last + 1e-9);
  }
  EXPECT_LT(last, first / 1000);
  const auto learnt = LinearRegression::learnt(*session);
  EXPECT_THAT(learnt, ::testing::Pointwise(FloatNear(0.1f), kTruth));
  EXPECT_THAT(learnt, ::testing::Pointwise(FloatNear(1e-4f), LinearRegression::learnt(local)));
}

// Between-graph replication, asynchronous: each client drives its own worker, the variables are
// shared.
TEST_F(AssignTest, TwoClientsTrainTheSameVariables) {
  start();
  const std::array<LinearRegression, 2> models{LinearRegression("/job:worker/task:0"),
                                               LinearRegression("/job:worker/task:1")};
  const auto chief = open(models[0].graph(), {2, 0, 1});
  models[0].initialise(*chief);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < 2; ++i) {
    clients.emplace_back([&, i] {
      const auto session = open(models[i].graph(), {2 + i, 0, 1});
      for (uint64_t step = 0; step < 100; ++step) models[i].train(*session, 1000 * i + step);
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_THAT(LinearRegression::learnt(*chief), ::testing::Pointwise(FloatNear(0.1f), kTruth));
}

// The client is killed while it sends, while ps/0 adds, or while ps/0 replies. The variable holds
// every step that was answered and at most one more, and no step in part.
TEST_F(AssignTest, AClientThatIsKilledLeavesVariablesWhole) {
  start();
  constexpr int64_t kElements = 1 << 20;
  for (int round = 0; round < 4; ++round) {
    const std::string container = "round " + std::to_string(round);
    const graph::Graph graph = makeAddingGraph(container, kElements);
    const auto session = open(graph, {0});
    session->setVariable("w", filled({kElements}, 0));
    Process client({std::string(std::getenv("DTF_BUILD_ROOT")) + "/tests/e2e/assign_client",
                    target(0), container, std::to_string(kElements)});
    ASSERT_TRUE(client.waitForOutput("step " + std::to_string(1 + round), kSoon)) << client.err();
    client.signal(SIGKILL);
    EXPECT_EQ(client.wait(kSoon).exit_code, 128 + SIGKILL);
    const std::string told = client.out();
    const auto answered = static_cast<float>(std::count(told.begin(), told.end(), '\n'));
    const auto values = session->run({}, std::vector<std::string>{"w"});
    const auto w = values[0].as<float>();
    EXPECT_TRUE(w[0] == answered || w[0] == answered + 1) << w[0] << " after " << answered;
    EXPECT_TRUE(isWhole(w));
    const Tensor ones = filled({kElements}, 1);
    const auto added =
        session->run(std::vector<engine::Feed>{{"x", &ones}}, std::vector<std::string>{"add"});
    EXPECT_TRUE(isWhole(added[0].as<float>()));
  }
}

}  // namespace
}  // namespace dtf::testing
