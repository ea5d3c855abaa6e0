// Synchronous replicas over tasks of this process and over tasks that serve on real sockets: each
// client has its own graph and session, and a thread while it waits. TensorFlow's cases with exact
// values (sync_replicas_optimizer_test.py), the bits of a parameter server with as many gradients,
// and clients that are late, die and return.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>

#include "common/base/random.h"
#include "common/engine/session.h"
#include "common/optimizer/minimize.h"
#include "common/optimizer/optimizer_text.h"
#include "tests/conformance/session_harness.h"
#include "tests/support/test_seed.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/optimizer/trainer.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using testing::floats;
using ::testing::HasSubstr;
using testing::kPs0;
using testing::kWorker0;
using testing::kWorker1;
using testing::nameOf;
using testing::SessionHarness;

constexpr TaskId kPs1{JobKind::kPs, 1};

// v0 on ps/0; v1 and a table on ps/1. The gradients are fed: the loss is their product with the
// variables.
class Client {
 public:
  Client(SessionHarness& harness, const optimizer::SyncReplicas& replicas,
         const std::string& optimizer = "gradient_descent learning_rate=2", int64_t elements = 1,
         Duration step_max = std::chrono::seconds(60))
      : elements_(elements) {
    Output v0, v1, rows;
    {
      const auto there = b_.deviceScope("/job:ps/task:0");
      v0 = b_.variable("v0", Shape{elements}, "zeros");
    }
    {
      const auto there = b_.deviceScope("/job:ps/task:1");
      v1 = b_.variable("v1", Shape{elements}, "ones");
      rows = b_.variable("rows", Shape{kRows, 1}, "zeros");
    }
    const Output g0 = b_.placeholder("g0", DType::kFloat32, Shape{elements});
    const Output g1 = b_.placeholder("g1", DType::kFloat32, Shape{elements});
    const Output id = b_.placeholder("id", DType::kInt32, Shape{2});
    const Output gr = b_.placeholder("gr", DType::kFloat32, Shape{2, 1});
    const Output last = b_.sum(b_.mul(v0, g0));
    const Output loss =
        b_.add(b_.add(last, b_.sum(b_.mul(v1, g1))), b_.sum(b_.mul(b_.gather(rows, id), gr)));
    const auto made = optimizer::minimize(graph_, loss, optimizer::decodeOptimizer(optimizer),
                                          {.replicas = replicas});
    train_ = graph_.node(made.train.node).name;
    accepted_ = graph_.node(made.accepted->node).name + ":1";
    finish_ = graph_.node(*made.finish).name;
    session_ = std::make_unique<Session>(graph_, harness.connect(step_max));
  }

  struct Result {
    int64_t step = 0;
    int64_t accepted = 0;
    bool operator==(const Result&) const = default;
  };
  Result push(const std::vector<float>& g0, const std::vector<float>& g1,
              const std::vector<int32_t>& ids, const std::vector<float>& rows) {
    Tensor named(DType::kInt32, Shape{2});
    std::copy(ids.begin(), ids.end(), named.as<int32_t>().begin());
    const Tensor a = floats({elements_}, g0), b = floats({elements_}, g1);
    const Tensor c = floats({2, 1}, rows);
    const std::vector<Feed> feeds = {{"g0", &a}, {"g1", &b}, {"id", &named}, {"gr", &c}};
    const std::vector<std::string> fetches = {train_, accepted_};
    const auto values = session_->run(feeds, fetches);
    return {values[0].as<int64_t>()[0], values[1].as<int64_t>()[0]};
  }
  // As worker k of TensorFlow's test.
  Result pushAs(int k) {
    const auto d = static_cast<float>(k) * 0.2F;
    return push({0.1F + d}, {0.9F + d}, {1, 1}, {0.1F + d, 0});
  }
  std::future<Result> pushLater(int k) {
    return std::async(std::launch::async, [this, k] { return pushAs(k); });
  }
  std::vector<float> value(const std::string& name) {
    const std::vector<std::string> fetches = {name};
    const auto values = session_->run({}, fetches);
    const auto all = values[0].as<float>();
    return {all.begin(), all.end()};
  }
  int64_t counter(const std::string& name) {
    const std::vector<std::string> fetches = {name};
    return session_->run({}, fetches)[0].as<int64_t>()[0];
  }
  void finish() {
    const std::vector<std::string> targets = {finish_};
    session_->run({}, {}, targets);
  }
  Session& session() { return *session_; }

  static constexpr int64_t kRows = 4;

 private:
  const int64_t elements_;
  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  std::string train_, accepted_, finish_;
  std::unique_ptr<Session> session_;
};

class SyncReplicasSuite : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Client> client(int64_t rank, int64_t aggregate, int64_t total,
                                 Duration step_max = std::chrono::seconds(60)) {
    return std::make_unique<Client>(harness_, optimizer::SyncReplicas{aggregate, total, rank},
                                    "gradient_descent learning_rate=2", 1, step_max);
  }
  static void expectValues(Client& by, float v0, float v1, float row) {
    EXPECT_FLOAT_EQ(by.value("v0")[0], v0);
    EXPECT_FLOAT_EQ(by.value("v1")[0], v1);
    EXPECT_FLOAT_EQ(by.value("rows")[1], row);
    EXPECT_EQ(by.value("rows")[0], 0) << "no gradient names it";
  }

  static constexpr int64_t kPausedSteps = 2000;

  SessionHarness harness_{GetParam(),
                          {graph::fullDevice(kWorker0), graph::fullDevice(kWorker1),
                           graph::fullDevice(kPs0), graph::fullDevice(kPs1)},
                          {.sessions = 16}};
};

INSTANTIATE_TEST_SUITE_P(Tasks, SyncReplicasSuite, ::testing::Bool(), nameOf);

TEST_P(SyncReplicasSuite, TwoWorkersHaveTensorFlowsValues) {
  const auto a = client(0, 2, 2), b = client(1, 2, 2);
  a->session().initialize(1);
  auto waits = a->pushLater(0);
  EXPECT_EQ(b->pushAs(1), (Client::Result{1, 1}));
  EXPECT_EQ(waits.get(), (Client::Result{1, 1}));
  expectValues(*a, -0.4F, -1, -0.4F);
  auto again = b->pushLater(1);
  EXPECT_EQ(a->pushAs(0), (Client::Result{2, 1}));
  again.get();
  expectValues(*b, -0.8F, -3, -0.8F);
  EXPECT_EQ(a->counter("v0/sync_step"), 2);
  EXPECT_EQ(a->counter("rows/sync_step"), 2);
}

TEST_P(SyncReplicasSuite, AThirdClientIsABackup) {
  const auto a = client(0, 2, 3), b = client(1, 2, 3), c = client(2, 2, 3);
  a->session().initialize(1);
  auto first = a->pushLater(0);
  EXPECT_EQ(c->pushAs(2), (Client::Result{1, 1}));
  EXPECT_EQ(first.get(), (Client::Result{1, 1}));
  expectValues(*a, -0.6F, -1.2F, -0.6F);
  auto second = a->pushLater(0);
  EXPECT_EQ(b->pushAs(1), (Client::Result{2, 1}));
  EXPECT_EQ(second.get(), (Client::Result{2, 1}));
  expectValues(*a, -1.0F, -3.2F, -1.0F);
}

TEST_P(SyncReplicasSuite, FewerClientsBringSeveralGradientsEach) {
  const auto a = client(0, 3, 2), b = client(1, 3, 2);
  a->session().initialize(1);
  EXPECT_EQ(a->pushAs(0), (Client::Result{0, 1})) << "more is to come: it doesn't wait";
  auto waits = a->pushLater(1);
  EXPECT_EQ(b->pushAs(2), (Client::Result{1, 1}));
  EXPECT_EQ(waits.get(), (Client::Result{1, 1}));
  expectValues(*a, -0.6F, -1.2F, -0.6F);
}

TEST_P(SyncReplicasSuite, ALateStepNamesTheMissingGradients) {
  const auto a = client(0, 2, 2, std::chrono::seconds(5));
  a->session().initialize(1);
  EXPECT_THAT(errorText([&] { a->pushAs(0); }),
              AllOf(HasSubstr("SyncReplicasArrive"),
                    HasSubstr("step 0 of 'global_step' has 1 of 2 gradients; missing: rank 1")));
}

TEST_P(SyncReplicasSuite, ADeadClientsGradientStays) {
  auto a = client(0, 2, 2, std::chrono::seconds(5));
  const auto b = client(1, 2, 2);
  b->session().initialize(1);
  EXPECT_THAT(errorText([&] { a->pushAs(0); }), HasSubstr("1 of 2"));
  EXPECT_EQ(b->pushAs(1), (Client::Result{1, 1}));
  expectValues(*b, -0.4F, -1, -0.4F);
  a = client(0, 2, 2);
  auto returned = a->pushLater(0);
  EXPECT_EQ(b->pushAs(1), (Client::Result{2, 1}));
  EXPECT_EQ(returned.get(), (Client::Result{2, 1}));
  expectValues(*b, -0.8F, -3, -0.8F);
}

TEST_P(SyncReplicasSuite, FinishEndsEachWaitAndInitialisingBeginsAnew) {
  const auto a = client(0, 2, 2), b = client(1, 2, 2);
  a->session().initialize(1);
  auto waits = std::async(std::launch::async, [&] { return errorText([&] { a->pushAs(0); }); });
  b->finish();
  EXPECT_THAT(waits.get(), HasSubstr("finished"));
  EXPECT_THAT(errorText([&] { b->pushAs(1); }), HasSubstr("'global_step' is finished"));
  b->session().initialize(1);
  auto again = a->pushLater(0);
  EXPECT_EQ(b->pushAs(1), (Client::Result{1, 1}));
  again.get();
}

// A gradient counts once, also for a client that makes up its decision.
TEST_P(SyncReplicasSuite, ADecisionThatRepeatsAGradientIsRefused) {
  const auto a = client(0, 2, 2);
  a->session().initialize(1);
  Tensor decision(DType::kInt64, Shape{3});
  decision.as<int64_t>()[0] = 0;
  decision.as<int64_t>()[1] = decision.as<int64_t>()[2] = 5;
  const std::vector<Feed> feeds = {{"GradientDescent/arrive", &decision}};
  const std::vector<std::string> targets = {"GradientDescent/update_v0"};
  EXPECT_THAT(errorText([&] { a->session().run(feeds, {}, targets); }),
              HasSubstr("has the gradient 5 twice"));
}

TEST_P(SyncReplicasSuite, ClientsOfOtherNumbersAreRefused) {
  const auto a = client(0, 2, 2);
  const auto b = client(1, 3, 3);
  a->session().initialize(1);
  auto waits = std::async(std::launch::async, [&] { return errorText([&] { a->pushAs(0); }); });
  auto other = std::async(std::launch::async, [&] { return errorText([&] { b->pushAs(1); }); });
  // Whichever comes first waits; the other is refused.
  while (waits.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready &&
         other.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
  }
  a->finish();
  EXPECT_THAT(waits.get() + other.get(), HasSubstr("others at 'global_step' aggregate"));
}

// The clients of one graph go on.
TEST_P(SyncReplicasSuite, AClientOfAnotherOptimizerIsRefused) {
  const auto a = client(0, 2, 2), b = client(1, 2, 2);
  Client other(harness_, {2, 2, 1}, "gradient_descent learning_rate=1");
  a->session().initialize(1);
  auto first = a->pushLater(0);
  EXPECT_EQ(b->pushAs(1), (Client::Result{1, 1}));
  first.get();
  EXPECT_THAT(errorText([&] { other.pushAs(1); }),
              AllOf(HasSubstr("rank 1 trains by gradient_descent"),
                    HasSubstr("give all clients the same graph and optimizer")));
  auto second = a->pushLater(0);
  EXPECT_EQ(b->pushAs(1), (Client::Result{2, 1}));
  second.get();
}

// In a pause no step is decided, however many gradients there are.
TEST_P(SyncReplicasSuite, APauseHoldsTheStepUntilItIsResumed) {
  const auto a = client(0, 2, 2), b = client(1, 2, 2), reader = client(0, 2, 2);
  a->session().initialize(1);
  const std::vector<std::string> pause = {"GradientDescent/pause"};
  const std::vector<std::string> resume = {"GradientDescent/resume"};
  const auto trainFully = [](Client& client, int k) {
    for (int i = 0; i < kPausedSteps; ++i) client.pushAs(k);
  };
  auto first = std::async(std::launch::async, [&] { trainFully(*a, 0); });
  auto second = std::async(std::launch::async, [&] { trainFully(*b, 1); });
  while (reader->counter("global_step") == 0) {
  }
  auto pausing = std::async(std::launch::async, [&] { reader->session().run({}, {}, pause); });
  // The pause begins some time after the call; then the step stays.
  int64_t step = -1;
  for (int looks = 0; looks < 200; ++looks) {
    const int64_t now = reader->counter("global_step");
    if (now != step) looks = 0;
    step = now;
  }
  EXPECT_LT(step, kPausedSteps) << "no pause held the clients";
  while (pausing.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
    reader->session().run({}, {}, resume);
  first.get();
  second.get();
  EXPECT_EQ(reader->counter("global_step"), kPausedSteps);
}

// Each optimizer, three clients that arrive in any order.
TEST_P(SyncReplicasSuite, TheMeanHasTheBitsOfAParameterServer) {
  constexpr int64_t kElements = 1500;
  constexpr int kRanks = 3, kSteps = 6;
  for (const std::string text :
       {"gradient_descent learning_rate=0.1", "adam learning_rate=0.01",
        "momentum learning_rate=0.1 moving_average.decay=0.9", "lamb learning_rate=0.01"}) {
    SCOPED_TRACE(text);
    Random random(dtf::testing::testSeed(), 0);
    SCOPED_TRACE(dtf::testing::testSeed());
    std::vector<std::unique_ptr<Client>> clients;
    for (int64_t rank = 0; rank < kRanks; ++rank)
      clients.push_back(std::make_unique<Client>(
          harness_, optimizer::SyncReplicas{kRanks, kRanks, rank}, text, kElements));
    clients[0]->session().initialize(1);
    optimizer::Trainer store(optimizer::decodeOptimizer(text),
                             std::vector<float>(size_t{kElements}, 1));
    for (int step = 0; step < kSteps; ++step) {
      std::vector<std::vector<float>> gradients(kRanks, std::vector<float>(kElements));
      for (auto& gradient : gradients)
        for (float& value : gradient) value = random.normal();
      std::vector<std::future<Client::Result>> running;
      std::vector<size_t> order = {0, 1, 2};
      std::swap(order[0], order[random.below(3)]);
      for (const size_t rank : order)
        running.push_back(std::async(std::launch::async, [&, rank] {
          return clients[rank]->push(std::vector<float>(kElements), gradients[rank], {0, 1},
                                     {1, 1});
        }));
      for (auto& each : running) EXPECT_EQ(each.get(), (Client::Result{step + 1, 1}));
      store.step(gradients);
    }
    const std::vector<float> trained = clients[1]->value("v1");
    EXPECT_EQ(std::memcmp(trained.data(), store.w(), kElements * sizeof(float)), 0);
    clients[0]->session().reset("");
  }
}

}  // namespace
}  // namespace dtf::engine
