// psd --serve and workerd --serve: sessions of this process run on them. Kill -9 in the middle of a
// step, frozen tasks, signals, peers that are no such tasks.

#include <gmock/gmock.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "common/engine/session.h"
#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/net/connector.h"
#include "common/net/message_stream.h"
#include "common/net/rpc_connection.h"
#include "common/wire/parts.capnp.h"
#include "common/wire/session/remote_tasks.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {
namespace {

using graph::Output;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kSoon = seconds(30);

Tensor filled(Shape shape, float value) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  std::fill(tensor.as<float>().begin(), tensor.as<float>().end(), value);
  return tensor;
}

// One ps and two workers. w on ps/0, x and a product on worker/0, a loss on worker/1.
class ServeTest : public ClusterTest {
 protected:
  enum Task { kPs0, kWorker0, kWorker1 };

  ServeTest() {
    graph::Builder b(graph_);
    {
      const auto ps = b.deviceScope("/job:ps/task:0");
      b.variable("w", {4, 3});
    }
    const Output w{graph_.find("w")->id};
    const Output x = b.placeholder("x", DType::kFloat32, {2, 4});
    const Output logits = b.matMul(x, w);
    const auto worker1 = b.deviceScope("/job:worker/task:1");
    const auto labels = b.placeholder("labels", DType::kInt32, {2});
    loss_ = graph_.node(b.sparseSoftmaxCrossEntropy(logits, labels).loss.node).name;
    b.node("Scale", {logits}, {{"factor", 2.0}}, "doubled");
  }

  void start() {
    file_ = writeCluster({.ps = 1, .workers = 2, .ports = ports_});
    for (const auto& [job, index] : {std::pair{"ps", 0}, {"worker", 0}, {"worker", 1}})
      tasks_.push_back(startTask(file_, job, index, {"--serve"}));
    for (Process& task : tasks_) ASSERT_TRUE(task.waitForOutput("event=serving", kSoon));
  }
  std::string target(Task task) const {
    return "dtf://localhost:" + std::to_string(ports_[static_cast<size_t>(task)]);
  }
  // worker/0 first: it runs the ops without a device.
  std::unique_ptr<engine::Session> open(Duration step_max = seconds(60),
                                        Duration abort_max = seconds(5)) {
    auto session = std::make_unique<engine::Session>(
        graph_, std::make_unique<wire::RemoteTasks>(wire::RemoteTasksOptions{
                    .targets = {target(kWorker0), target(kWorker1), target(kPs0)},
                    .limits = {.step_max = step_max, .abort_max = abort_max}}));
    session->setVariable("w", filled({4, 3}, 0.5));
    return session;
  }
  float doubled(engine::Session& session) {
    return session.run(std::vector<engine::Feed>{{"x", &x_}}, std::vector<std::string>{"doubled"})
        .at(0)
        .as<float>()[0];
  }
  std::string failure(engine::Session& session) {
    try {
      doubled(session);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  // A task's status of its sessions.
  std::string status(Task task) const {
    net::Reactor reactor;
    const auto port = static_cast<uint16_t>(ports_[static_cast<size_t>(task)]);
    net::RpcConnection connection(
        kj::heap<net::AsioMessageStream>(
            reactor.port,
            net::connectToPeer(reactor.port, "localhost", port, {}).wait(reactor.wait_scope),
            net::Limits{}, net::BufferPool::create(0)),
        net::RpcOptions{.peer = "task"});
    auto gate = connection.bootstrap().castAs<schema::TaskGate>();
    return gate.statusRequest().send().wait(reactor.wait_scope).getJson().cStr();
  }
  bool awaitStatus(Task task, const std::string& text) const {
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    while (status(task).find(text) == std::string::npos) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  const std::vector<int> ports_ = freePorts(3);
  graph::Graph graph_{graph::standardOps()};
  std::string loss_, file_;
  std::vector<Process> tasks_;
  const Tensor x_ = filled({2, 4}, 3);
};

TEST_F(ServeTest, AGraphRunsOnThreeProcesses) {
  start();
  const auto session = open();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(doubled(*session), 12);
  session->setVariable("w", filled({4, 3}, 1));
  EXPECT_EQ(doubled(*session), 24);
  EXPECT_EQ(session->counts().plans, 1u);
  EXPECT_EQ(session->counts().steps, 21u);
  const engine::RendezvousLoad load = session->load();
  EXPECT_EQ(load.steps + load.parked + load.waiting, 0u);
}

TEST_F(ServeTest, AnErrorOfAKernelIsTheSessionsAndNothingIsLeft) {
  start();
  const auto session = open();
  Tensor labels(DType::kInt32, {2});
  const auto loss = [&](int32_t label) {
    labels.as<int32_t>()[1] = label;
    return session->run(std::vector<engine::Feed>{{"x", &x_}, {"labels", &labels}},
                        std::vector{loss_});
  };
  loss(1);
  try {
    loss(7);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_THAT(error.message(), HasSubstr("7"));
  }
  loss(2);
  EXPECT_EQ(session->load().steps, 0u);
}

// worker/1 is frozen, so that the step lasts until it is killed.
TEST_F(ServeTest, KillNineInTheMiddleOfAStepIsToldByName) {
  start();
  const auto session = open();
  doubled(*session);
  tasks_[kWorker1].signal(SIGSTOP);
  std::string told;
  std::thread client([&] { told = failure(*session); });
  EXPECT_TRUE(awaitStatus(kWorker0, "\"steps\":1"));
  tasks_[kWorker1].signal(SIGKILL);
  client.join();
  EXPECT_THAT(told, HasSubstr("worker/1"));
  EXPECT_EQ(tasks_[kWorker1].wait(kSoon).exit_code, 128 + SIGKILL);
  EXPECT_THAT(failure(*session), HasSubstr("worker/1")) << "it is lost to this session";
  EXPECT_TRUE(awaitStatus(kWorker0, "\"steps\":0"));
  // Another session finds its successor.
  tasks_.push_back(startTask(file_, "worker", 1, {"--serve"}));
  ASSERT_TRUE(tasks_.back().waitForOutput("event=serving", kSoon));
  EXPECT_EQ(doubled(*open()), 12);
}

TEST_F(ServeTest, AFrozenTaskCostsAStepItsDeadlineAndIsNamed) {
  start();
  const auto session = open(seconds(2));
  doubled(*session);
  tasks_[kWorker1].signal(SIGSTOP);
  EXPECT_THAT(failure(*session), HasSubstr("worker/1"));
  EXPECT_TRUE(awaitStatus(kWorker0, "\"steps\":0")) << "the session keeps who is well";
  tasks_[kWorker1].signal(SIGCONT);
}

TEST_F(ServeTest, SessionsEndWithTheirClientsAndTasksWithASignal) {
  start();
  {
    const auto session = open();
    doubled(*session);
    EXPECT_TRUE(awaitStatus(kPs0, "\"plans\":1"));
  }
  EXPECT_TRUE(awaitStatus(kPs0, "\"sessions\":[]"));
  const auto session = open();
  tasks_[kPs0].signal(SIGTERM);
  EXPECT_EQ(tasks_[kPs0].wait(kSoon).exit_code, 128 + SIGTERM) << "a session was cut short";
  EXPECT_THAT(failure(*session), HasSubstr("ps/0"));
  EXPECT_TRUE(awaitStatus(kWorker1, "\"sessions\":[{"));
}

TEST_F(ServeTest, ATaskWithoutSessionsEndsWithCode0) {
  start();
  for (Process& task : tasks_) task.signal(SIGTERM);
  for (Process& task : tasks_) EXPECT_EQ(task.wait(kSoon).exit_code, 0) << task.err();
}

TEST_F(ServeTest, APsOfAJobServesNoSessions) {
  file_ = writeCluster({.ps = 1, .workers = 2, .ports = ports_});
  Process ps = startTask(file_, "ps", 0);
  ASSERT_TRUE(ps.waitForOutput("event=listening", kSoon));
  try {
    wire::RemoteTasks tasks({.targets = {target(kPs0)}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.message(), AllOf(HasSubstr(std::to_string(ports_[0])), HasSubstr("--serve")));
  }
}

// One ps, and a worker with the devices that a test gives it.
class ServeDevicesTest : public ClusterTest {
 protected:
  ~ServeDevicesTest() override { ::unsetenv("DTF_GPU_PLUGIN"); }

  // Processes started from now on take the plug-in of tests/gpu, which computes on the host, for
  // GPUs'.
  static void useHostPlugin() {
    const char* const build = std::getenv("DTF_BUILD_ROOT");
    ASSERT_NE(build, nullptr);
    ::setenv("DTF_GPU_PLUGIN", (std::string(build) + "/tests/gpu/libdtf_host_plugin.so").c_str(),
             1);
  }
  void start(const std::string& devices) {
    file_ = writeCluster({.ps = 1,
                          .workers = 1,
                          .worker_more = ", threads: 2, devices: " + devices,
                          .ports = ports_});
    tasks_.push_back(startTask(file_, "ps", 0, {"--serve"}));
    tasks_.push_back(startTask(file_, "worker", 0, {"--serve"}));
  }
  void awaitServing(const std::string& devices) {
    for (Process& task : tasks_) ASSERT_TRUE(task.waitForOutput("event=serving", kSoon));
    ASSERT_TRUE(tasks_[1].waitForOutput("devices=" + devices + " threads=2", kSoon));
  }
  std::unique_ptr<engine::Session> open(const graph::Graph& graph) const {
    return std::make_unique<engine::Session>(
        graph, std::make_unique<wire::RemoteTasks>(wire::RemoteTasksOptions{
                   .targets = {"dtf://localhost:" + std::to_string(ports_[1]) + "/worker/0",
                               "dtf://localhost:" + std::to_string(ports_[0]) + "/ps/0"}}));
  }

  const std::vector<int> ports_ = freePorts(2);
  std::string file_;
  std::vector<Process> tasks_;
};

// The gradient of the mean squared error of x w.
Output gradientOf(graph::Builder& b, Output w, Output x, Output wanted) {
  const Output loss = b.mean(b.squaredDifference(b.matMul(x, w), wanted));
  return graph::addGradients(b.graph(), loss, std::array{w}).at(0);
}

// Two towers, each with half of the batch: their inputs come from cpu:0, the weights from a ps.
TEST_F(ServeDevicesTest, TowersOfAWorkerGiveTheGradientOfTheWholeBatch) {
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  Output w;
  {
    const auto ps = b.deviceScope("/job:ps/task:0");
    w = b.variable("w", {3, 2});
  }
  const Output x = b.placeholder("x", DType::kFloat32, {8, 3});
  const Output wanted = b.placeholder("wanted", DType::kFloat32, {8, 2});
  const Output one = gradientOf(b, w, x, wanted);
  std::vector<Output> towers;
  for (int64_t tower = 0; tower < 2; ++tower) {
    const auto device = b.deviceScope("/job:worker/task:0/cpu:" + std::to_string(tower));
    towers.push_back(gradientOf(b, w, b.slice(x, {tower * 4, 0}, {4, 3}),
                                b.slice(wanted, {tower * 4, 0}, {4, 2})));
  }
  const Output mean = b.scale(b.addN(towers), 0.5);
  start("[cpu:0, cpu:1]");
  awaitServing("cpu:0,cpu:1");
  const auto session = open(graph);
  Tensor x_value(DType::kFloat32, {8, 3}), wanted_value(DType::kFloat32, {8, 2});
  for (size_t i = 0; i < 24; ++i) x_value.as<float>()[i] = static_cast<float>(i % 7) / 7 - 0.4f;
  for (size_t i = 0; i < 16; ++i) wanted_value.as<float>()[i] = static_cast<float>(i % 5) / 5;
  session->setVariable("w", filled({3, 2}, 0.25));
  const auto both =
      session->run(std::vector<engine::Feed>{{"x", &x_value}, {"wanted", &wanted_value}},
                   std::vector{graph.node(one.node).name, graph.node(mean.node).name});
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(both[0].as<float>()[i], both[1].as<float>()[i], 1e-6) << i;
    EXPECT_NE(both[0].as<float>()[i], 0) << i;
  }
  EXPECT_EQ(session->load().parked, 0u);
}

TEST_F(ServeDevicesTest, AGpuOfAWorkerComputesWhatIsPlacedThere) {
  useHostPlugin();
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const Output x = b.placeholder("x", DType::kFloat32, {2, 3});
  Output product;
  {
    const auto gpu = b.deviceScope("/job:worker/task:0/gpu:0");
    product = b.matMul(x, b.variable("w", {3, 2}));
  }
  const Output doubled = b.scale(product, 2);
  start("[cpu:0, gpu:0]");
  awaitServing("cpu:0,gpu:0");
  const auto session = open(graph);
  session->setVariable("w", filled({3, 2}, 0.5));
  const Tensor value = filled({2, 3}, 2);
  const auto fetched = session->run(std::vector<engine::Feed>{{"x", &value}},
                                    std::vector{graph.node(doubled.node).name});
  EXPECT_THAT(fetched[0].as<float>(), ::testing::Each(6));
}

TEST_F(ServeDevicesTest, ADeviceThatTheHostLacksIsToldBeforeTheTaskIsReady) {
  useHostPlugin();
  start("[cpu:0, gpu:5]");
  const ProcessResult result = tasks_[1].wait(kSoon);
  EXPECT_EQ(result.exit_code, 69) << result.err;
  EXPECT_THAT(result.err, HasSubstr("There is no device gpu:5"));
  EXPECT_THAT(result.err, ::testing::Not(HasSubstr("event=serving")));
}

}  // namespace
}  // namespace dtf::testing
