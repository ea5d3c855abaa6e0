#include "common/train/replica_pause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "common/engine/local_tasks.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/optimizer/minimize.h"
#include "common/optimizer/optimizer_text.h"
#include "common/train/graph_saver.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

using ::testing::HasSubstr;

// Clients of two of three replicas, on two ps of this process. Each step takes 1 from a and from b.
class ReplicaPauseTest : public ::testing::Test {
 protected:
  static constexpr int64_t kAggregated = 2, kReplicas = 3;
  struct Client {
    graph::Graph graph{graph::standardOps()};
    std::vector<std::string> train;
    std::unique_ptr<engine::Session> session;
    int64_t step() { return session->run({}, train)[0].as<int64_t>()[0]; }
  };

  ReplicaPauseTest() {
    disk_.makeFolder("/run");
    for (int64_t rank = 0; rank < kReplicas; ++rank) clients_.push_back(makeClient(rank));
    clients_[0]->session->initialize(1);
  }
  std::unique_ptr<Client> makeClient(int64_t rank) {
    auto client = std::make_unique<Client>();
    graph::Builder b(client->graph);
    std::vector<graph::Output> all;
    for (const char* const task : {"0", "1"}) {
      const auto there = b.deviceScope(std::string("/job:ps/task:") + task);
      all.push_back(b.sum(b.variable(std::string("on_") + task, Shape{1}, "zeros")));
    }
    const auto made =
        optimizer::minimize(client->graph, b.add(all[0], all[1]),
                            optimizer::decodeOptimizer("gradient_descent learning_rate=1"),
                            {.replicas = optimizer::SyncReplicas{kAggregated, kReplicas, rank}});
    client->train = {client->graph.node(made.train.node).name};
    client->session = std::make_unique<engine::Session>(
        client->graph, std::make_unique<engine::LocalTasks>(process_, std::chrono::seconds(60)));
    return client;
  }
  // Trains in all clients until `act` returns: they never pause by themselves.
  template <class Act>
  void whileTraining(const Act& act) {
    std::vector<std::future<void>> running;
    for (const auto& client : clients_)
      running.push_back(std::async(std::launch::async, [this, &client] {
        try {
          while (true) client->step();
        } catch (const Error& error) {
          EXPECT_THAT(error.message(), HasSubstr("finished"));
        }
      }));
    act();
    const std::vector<std::string> finish = {"GradientDescent/finish"};
    clients_[0]->session->run({}, {}, finish);
    for (auto& each : running) each.get();
  }
  int64_t globalStep() {
    const std::vector<std::string> fetch = {"global_step"};
    return clients_[0]->session->run({}, fetch)[0].as<int64_t>()[0];
  }
  void awaitStep(int64_t step) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (globalStep() < step) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }

  testing::SimulatedDisk disk_;
  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice one_, two_;
  std::shared_ptr<engine::LocalProcess> process_ = std::make_shared<engine::LocalProcess>(
      std::vector{engine::SessionDevice{graph::fullDevice({JobKind::kPs, 0}), &one_, &kernels_},
                  engine::SessionDevice{graph::fullDevice({JobKind::kPs, 1}), &two_, &kernels_}});
  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_F(ReplicaPauseTest, ASaveAlwaysGetsOneStepOfClientsThatNeverPause) {
  constexpr int kSaves = 20;
  GraphSaver saver(disk_, {.max_to_keep = 0});
  whileTraining([&] {
    int64_t before = 0;
    for (int i = 0; i < kSaves; ++i) {
      awaitStep(before + 1);
      const auto path = saver.save(*clients_[0]->session, "/run/checkpoints");
      const auto counters = countersIn(saver.find(path).manifest);
      before = counters.at("global_step");
      EXPECT_EQ(counters.at("on_0/sync_step"), before);
      EXPECT_EQ(counters.at("on_1/sync_step"), before);
    }
    awaitStep(before + 2);  // the clients go on
  });
  for (const uint64_t step :
       checkpoint::CheckpointFolder(disk_, "/run/checkpoints", Incarnation::ofNow()).steps()) {
    saver.restore(*clients_[0]->session, "/run/checkpoints/step-" + std::to_string(step));
    const std::vector<std::string> fetches = {"on_0", "on_1"};
    for (const Tensor& value : clients_[0]->session->run({}, fetches))
      EXPECT_EQ(value.as<float>()[0], -static_cast<float>(step));
  }
}

TEST_F(ReplicaPauseTest, NoStepIsDecidedInIt) {
  whileTraining([&] {
    awaitStep(1);
    std::vector<int64_t> steps;
    {
      const ReplicaPause pause(*clients_[0]->session);
      // The pause begins soon; from then on the step stays.
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (steps.size() < 2000 && std::chrono::steady_clock::now() < deadline) {
        const int64_t step = globalStep();
        if (!steps.empty() && steps.back() != step) steps.clear();
        steps.push_back(step);
      }
    }
    EXPECT_EQ(steps.size(), 2000U);
    awaitStep(steps.back() + 1);
  });
}

// Two clients that read at once have a pause each.
TEST_F(ReplicaPauseTest, TwoPausesEndOnlyTogether) {
  GraphSaver one(disk_, {}), other(disk_, {});
  disk_.makeFolder("/other");
  whileTraining([&] {
    auto beside = std::async(std::launch::async, [&] {
      for (int i = 0; i < 5; ++i) other.save(*clients_[1]->session, "/other/" + std::to_string(i));
    });
    for (int i = 0; i < 5; ++i) one.save(*clients_[0]->session, "/run/" + std::to_string(i));
    beside.get();
  });
}

TEST_F(ReplicaPauseTest, AStepThatStaysHalfTakenIsNamed) {
  Tensor ahead(DType::kInt64, Shape());
  ahead.as<int64_t>()[0] = 3;
  clients_[0]->session->setVariable("on_1/sync_step", ahead);
  GraphSaver saver(disk_, {.pause_max = std::chrono::milliseconds(20)});
  EXPECT_THAT(
      graph::testing::errorText([&] { saver.save(*clients_[0]->session, "/run/checkpoints"); }),
      HasSubstr("a step stayed half taken for 0.02 s while the replicas were paused to "
                "save the variables ('global_step' is 0, but 'on_1/sync_step' is 3)"));
}

}  // namespace
}  // namespace dtf::train
