// psd --serve and workerd --serve: sessions of this process run on them. Kill -9 in the middle of a
// step, frozen tasks, signals, peers that are no such tasks.

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "common/engine/session.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/net/connector.h"
#include "common/net/message_stream.h"
#include "common/net/rpc_connection.h"
#include "common/wire/parts.capnp.h"
#include "common/wire/remote_tasks.h"
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
  // worker/0 first: what asks for no device runs there.
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
  // What a task says of its sessions.
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

}  // namespace
}  // namespace dtf::testing
