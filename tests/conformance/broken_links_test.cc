// What a job makes of a network that breaks: real psd servers and clients, and between them a proxy.
// Final parameters are compared to the bit with those of a run that nobody disturbed; in async mode
// each update moves every parameter by one, so that they count how often each was applied.

#include <chrono>
#include <cmath>

#include "common/ps/epoch.h"
#include "tests/conformance/rpc_harness.h"
#include "tests/support/flaky_proxy.h"

namespace dtf::ps {

namespace {

using Way = testing::FlakyProxy::Way;
using Parameters = std::vector<std::vector<float>>;
using std::chrono::milliseconds;
using std::chrono::seconds;

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ParameterClientSuite);

constexpr uint32_t kElements = 1600;  // of each ps's shard

ModelDeclaration modelOf(uint32_t ps_tasks, uint32_t workers, bool sync, uint64_t steps) {
  std::vector<VariableParts> variables;
  for (uint32_t ps = 0; ps < ps_tasks; ++ps)
    variables.push_back({"v" + std::to_string(ps), Shape{kElements}, {{ps, 0, kElements}}});
  ModelDeclaration model;
  model.layout = makeLayout(variables, ps_tasks);
  model.optimizer.kind = cluster::OptimizerSpec::Kind::kGradientDescent;
  model.optimizer.learning_rate = 1;
  if (sync) model.replication = {cluster::ReplicationSpec::Mode::kSync, workers, workers};
  model.steps = steps;
  return model;
}

cluster::Timeouts healingTimeouts() {
  cluster::Timeouts timeouts = shortTimeouts();
  timeouts.lease_seconds = 10;
  timeouts.rejoin_seconds = 20;
  return timeouts;
}

// Gradients whose sum depends on the order in which it is made.
void writeGradients(ParameterClient& client, const ModelDeclaration& model, uint32_t rank,
                    uint64_t step) {
  const bool sync = model.replication.mode == cluster::ReplicationSpec::Mode::kSync;
  for (uint32_t ps = 0; ps < model.layout.shards.size(); ++ps)
    for (uint32_t i = 0; i < kElements; ++i)
      client.gradients(ps)[i] =
          sync ? std::sin(static_cast<float>(i * (rank + 1) + ps + step)) : -1.0F;
}

class BrokenLinks : public ::testing::Test {
 protected:
  using BeforeStep = std::function<void(uint64_t step)>;

  // A job of `workers`, from its first call to its last. Parameters as the chief has them at the end.
  Parameters train(
      const ModelDeclaration& model, uint32_t workers, bool flaky,
      const BeforeStep& before_step = [](uint64_t) {}) {
    const auto ps_tasks = static_cast<uint32_t>(model.layout.shards.size());
    RpcHarness cluster(ps_tasks, workers, healingTimeouts());
    proxies_.clear();
    for (uint32_t ps = 0; ps < ps_tasks; ++ps)
      proxies_.push_back(std::make_unique<testing::FlakyProxy>(cluster.psAddress(ps).port));
    if (prepare_) prepare_();
    if (flaky)
      cluster.via = [&](uint32_t, std::vector<cluster::Address>& ps) {
        for (uint32_t i = 0; i < ps.size(); ++i) ps[i].port = proxies_[i]->port();
      };
    Parameters parameters(ps_tasks);
    std::vector<std::future<void>> running;
    for (uint32_t rank = 0; rank < workers; ++rank)
      running.push_back(std::async(std::launch::async, [&, rank] {
        const auto client = cluster.connectRpc(rank);
        work(*client, model, rank, before_step);
        if (rank != 0) return client->finish();
        client->pull();
        for (uint32_t ps = 0; ps < ps_tasks; ++ps)
          parameters[ps].assign(client->parameters(ps), client->parameters(ps) + kElements);
        client->finish();
      }));
    for (auto& worker : running) worker.get();
    return parameters;
  }

  static void work(ParameterClient& client, const ModelDeclaration& model, uint32_t rank,
                   const BeforeStep& before_step) {
    client.declare(model);
    const std::vector<float> zeros(kElements);
    if (rank == 0)
      client.initialise(std::vector<std::span<const float>>(model.layout.shards.size(), zeros),
                        kFirstEpoch);
    client.waitInitialised();
    client.barrier("start");
    StepState state = client.pull();
    while (!state.done) {
      if (rank == 0) before_step(state.next_step);
      writeGradients(client, model, rank, state.next_step);
      state = client.exchange(state.next_step, state.next_batch, 0);
    }
    client.barrier("trained");
  }

  size_t cuts() const {
    size_t sum = 0;
    for (const auto& proxy : proxies_) sum += proxy->cuts();
    return sum;
  }

  std::function<void()> prepare_;
  std::vector<std::unique_ptr<testing::FlakyProxy>> proxies_;
};

// Before the request, amid its header, its first and its last bytes, behind it; amid the answer.
TEST_F(BrokenLinks, AStepIsAppliedOnceWhereverItsConnectionIsCut) {
  constexpr size_t kGradient = kElements * sizeof(float);
  const std::vector<size_t> places = {1,
                                      8,
                                      17,
                                      100,
                                      200,
                                      kGradient / 2,
                                      kGradient,
                                      kGradient + 64,
                                      kGradient + 200,
                                      kGradient + 400};
  const ModelDeclaration model = modelOf(1, 1, false, 2 * places.size());
  const Parameters parameters = train(model, 1, true, [&](uint64_t step) {
    const Way way = step % 2 == 0 ? Way::kToServer : Way::kToClient;
    proxies_[0]->cutAfter(way, places[step / 2]);
  });
  EXPECT_GE(cuts(), places.size());
  EXPECT_EQ(parameters[0], std::vector<float>(kElements, static_cast<float>(model.steps)));
}

TEST_F(BrokenLinks, FlappingCostsASyncJobNothingButTime) {
  const ModelDeclaration model = modelOf(2, 2, true, 3000);
  const Parameters calm = train(model, 2, false);
  prepare_ = [this] {
    for (auto& proxy : proxies_) proxy->cutEvery(milliseconds(50));
  };
  const Parameters flapped = train(model, 2, true);
  EXPECT_GT(cuts(), 4u);
  EXPECT_EQ(flapped, calm);
}

TEST_F(BrokenLinks, FlappingAppliesEveryAsynchronousUpdateOnce) {
  const ModelDeclaration model = modelOf(1, 2, false, 8000);
  prepare_ = [this] { proxies_[0]->cutEvery(milliseconds(50)); };
  const Parameters parameters = train(model, 2, true);
  EXPECT_GT(cuts(), 4u);
  EXPECT_EQ(parameters[0], std::vector<float>(kElements, 8000));
}

TEST_F(BrokenLinks, SingleBytesAreEnough) {
  const ModelDeclaration model = modelOf(1, 1, false, 2);
  prepare_ = [this] { proxies_[0]->setChunkMax(1); };
  EXPECT_EQ(train(model, 1, true)[0], std::vector<float>(kElements, 2));
}

// Cut one way only: the ps hears the worker, but the worker hears nothing; and the other way round.
TEST_F(BrokenLinks, ALinkThatIsSilentOneWayIsMadeAnew) {
  for (const Way way : {Way::kToClient, Way::kToServer}) {
    const ModelDeclaration model = modelOf(1, 1, false, 10);
    const Parameters parameters = train(model, 1, true, [&](uint64_t step) {
      if (step == 5) proxies_[0]->silence(way);
    });
    EXPECT_EQ(parameters[0], std::vector<float>(kElements, 10));
  }
}

TEST_F(BrokenLinks, APsThatStaysAwayEndsTheJobInTimeAndByName) {
  cluster::Timeouts timeouts = healingTimeouts();
  timeouts.rejoin_seconds = 1;
  RpcHarness cluster(1, 1, timeouts);
  testing::FlakyProxy proxy(cluster.psAddress(0).port);
  cluster.via = [&](uint32_t, std::vector<cluster::Address>& ps) { ps[0].port = proxy.port(); };
  const auto client = cluster.connectRpc(0);
  const ModelDeclaration model = modelOf(1, 1, false, 1000);
  std::chrono::steady_clock::time_point gone;
  try {
    work(*client, model, 0, [&](uint64_t step) {
      if (step != 3) return;
      proxy.refuse(true);
      gone = std::chrono::steady_clock::now();
    });
    FAIL() << "there was no ps";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_TRUE(error.message().starts_with("lost ps/0 (127.0.0.1:")) << error.message();
  }
  const auto waited = std::chrono::steady_clock::now() - gone;
  EXPECT_GE(waited, milliseconds(900));
  EXPECT_LT(waited, seconds(8));
}

}  // namespace

}  // namespace dtf::ps
