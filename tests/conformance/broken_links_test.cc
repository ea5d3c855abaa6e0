// What a job makes of a network that breaks: real psd servers and clients, and between them a proxy.
// Final parameters are compared to the bit with those of a run that nobody disturbed; in async mode
// each update moves every parameter by one, so that they count how often each was applied.

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "common/ps/epoch.h"
#include "common/wire/rpc_checkpoint_client.h"
#include "tests/conformance/rpc_harness.h"
#include "tests/support/flaky_proxy.h"

namespace dtf::ps {

namespace {

using Way = testing::FlakyProxy::Way;
using Parameters = std::vector<std::vector<float>>;
using std::chrono::milliseconds;
using std::chrono::seconds;

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ParameterClientSuite);

constexpr uint32_t kElements = 1600;           // of each ps's shard
constexpr uint32_t kStreamedElements = 32768;  // where gradients leave while they are written

ModelDeclaration modelOf(uint32_t ps_tasks, uint32_t workers, bool sync, uint64_t steps,
                         uint32_t elements = kElements) {
  std::vector<VariableParts> variables;
  for (uint32_t ps = 0; ps < ps_tasks; ++ps)
    variables.push_back({"v" + std::to_string(ps), Shape{elements}, {{ps, 0, elements}}});
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
    for (uint32_t i = 0; i < model.layout.shards[ps].elements; ++i)
      client.gradients(ps)[i] =
          sync ? std::sin(static_cast<float>(i * (rank + 1) + ps + step)) : -1.0F;
}

// The same on every ps: where two of them disagree on whose gradients a step takes, it shows.
void writeSameGradients(ParameterClient& client, const ModelDeclaration& model, uint32_t rank,
                        uint64_t step) {
  for (uint32_t ps = 0; ps < model.layout.shards.size(); ++ps)
    for (uint32_t i = 0; i < kElements; ++i)
      client.gradients(ps)[i] = static_cast<float>((rank + 1) * (step % 7 + 1));
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
    if (shares_) cluster.share_from_bytes = 0;
    cluster.stream_from_bytes = kStreamedElements * sizeof(float);
    proxies_.clear();
    for (uint32_t ps = 0; ps < ps_tasks; ++ps)
      proxies_.push_back(std::make_unique<testing::FlakyProxy>(cluster.psAddress(ps).port));
    if (prepare_) prepare_();
    if (flaky)
      cluster.via = [&](uint32_t, std::vector<cluster::Address>& ps) {
        for (uint32_t i = 0; i < ps.size(); ++i) ps[i].port = proxies_[i]->port();
      };
    return trainOn(cluster, model, workers, before_step);
  }

  // The same with healthy ways to the ps, but between them there are proxies: ps_proxies_, by who
  // calls and who is called.
  Parameters trainOverBrokenPsLinks(
      const ModelDeclaration& model, uint32_t workers, cluster::Durability durability,
      const BeforeStep& before_step = [](uint64_t) {}) {
    ps_proxies_.clear();
    const auto between = [this](uint32_t caller, std::vector<cluster::TaskSpec>& ps) {
      for (uint32_t called = 0; called < ps.size(); ++called) {
        if (called == caller) continue;
        auto& proxy = ps_proxies_[{caller, called}];
        proxy = std::make_unique<testing::FlakyProxy>(ps[called].address.port);
        ps[called].address.port = proxy->port();
      }
    };
    const auto ps_tasks = static_cast<uint32_t>(model.layout.shards.size());
    RpcHarness cluster(ps_tasks, workers, healingTimeouts(), durability, between);
    if (prepare_) prepare_();
    return trainOn(cluster, model, workers, before_step);
  }

  Parameters trainOn(RpcHarness& cluster, const ModelDeclaration& model, uint32_t workers,
                     const BeforeStep& before_step) {
    const auto ps_tasks = static_cast<uint32_t>(model.layout.shards.size());
    Parameters parameters(ps_tasks);
    std::vector<std::future<void>> running;
    for (uint32_t rank = 0; rank < workers; ++rank)
      running.push_back(std::async(std::launch::async, [&, rank] {
        before_call_();
        const auto client = cluster.connectRpc(rank);
        work(*client, model, rank, before_step);
        if (rank == 0) {
          before_call_();
          client->pull();
          EXPECT_EQ(client->TEST_sharesMemory(), shares_);
          for (uint32_t ps = 0; ps < ps_tasks; ++ps)
            parameters[ps].assign(client->parameters(ps),
                                  client->parameters(ps) + model.layout.shards[ps].elements);
          if (at_end_) at_end_(cluster);
        }
        before_call_();
        client->finish();
      }));
    for (auto& worker : running) worker.get();
    return parameters;
  }

  void work(ParameterClient& client, const ModelDeclaration& model, uint32_t rank,
            const BeforeStep& before_step) const {
    before_call_();
    client.declare(model);
    const std::vector<float> zeros(model.layout.shards[0].elements);
    before_call_();
    if (rank == 0)
      client.initialise(std::vector<std::span<const float>>(model.layout.shards.size(), zeros),
                        kFirstEpoch);
    before_call_();
    client.waitInitialised();
    before_call_();
    client.barrier("start");
    before_call_();
    StepState state = client.pull();
    while (!state.done) {
      if (rank == 0) before_step(state.next_step);
      write_(client, model, rank, state.next_step);
      before_call_();
      state = client.streamsGradients() ? stream(client, model, state)
                                        : client.exchange(state.next_step, state.next_batch, 0);
    }
    before_call_();
    client.barrier("trained");
  }

  // What is in the arenas of `client`, again, bit by bit behind the push's start.
  StepState stream(ParameterClient& client, const ModelDeclaration& model,
                   const StepState& due) const {
    const std::vector<ShardLayout>& shards = model.layout.shards;
    Parameters gradients;
    for (uint32_t ps = 0; ps < shards.size(); ++ps) {
      gradients.emplace_back(client.gradients(ps), client.gradients(ps) + shards[ps].elements);
      std::fill_n(client.gradients(ps), shards[ps].elements, std::nanf(""));
    }
    client.startPush(due.next_step, due.next_batch, 0);
    constexpr size_t kPieces = 4;
    for (size_t piece = 1; piece <= kPieces; ++piece) {
      std::vector<uint64_t> written;
      for (uint32_t ps = 0; ps < shards.size(); ++ps) {
        written.push_back(shards[ps].elements * piece / kPieces);
        std::copy_n(gradients[ps].begin(), written[ps], client.gradients(ps));
      }
      client.gradientsWritten(written);
      after_piece_(due.next_step, piece);
    }
    return client.finishPush();
  }

  size_t cuts() const {
    size_t sum = 0;
    for (const auto& proxy : proxies_) sum += proxy->cuts();
    for (const auto& [ends, proxy] : ps_proxies_) sum += proxy->cuts();
    return sum;
  }

  void forEachPsProxy(const std::function<void(testing::FlakyProxy&)>& change) {
    for (auto& [ends, proxy] : ps_proxies_) change(*proxy);
  }

  bool shares_ = false;  // workers and ps read each other's memory, on every connection anew
  std::function<void()> prepare_;
  std::function<void()> before_call_ = [] {};  // of any worker
  std::function<void(uint64_t step, size_t piece)> after_piece_ = [](uint64_t, size_t) {};
  std::function<void(RpcHarness&)> at_end_;  // while all ps are still there
  decltype(&writeGradients) write_ = writeGradients;
  std::vector<std::unique_ptr<testing::FlakyProxy>> proxies_;
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<testing::FlakyProxy>> ps_proxies_;
};

// What a network between ps may do, and what a job makes of it.
struct PsNetwork {
  const char* name;
  std::function<void(testing::FlakyProxy&)> prepare;
  // In every fifth step.
  std::function<void(testing::FlakyProxy&, uint64_t step)> disturb;
  bool cuts = true;
  bool is_made_anew = true;  // by the ps, behind that disturbance
  bool ends_calm = true;  // else a ps whose replica is read meets its keeper again, and is fenced
};

class BrokenPsLinks : public BrokenLinks, public ::testing::WithParamInterface<PsNetwork> {
 protected:
  // Parameters of a job whose ps talk over that network.
  Parameters trainDisturbed(const ModelDeclaration& model, uint32_t workers,
                            cluster::Durability durability) {
    if (GetParam().prepare) prepare_ = [this] { forEachPsProxy(GetParam().prepare); };
    return trainOverBrokenPsLinks(model, workers, durability, [this](uint64_t step) {
      if (step == 51) made_before_ = connections();
      if (!GetParam().disturb || step % 5 != 1) return;
      forEachPsProxy([step](testing::FlakyProxy& proxy) { GetParam().disturb(proxy, step); });
    });
  }

  size_t connections() const {
    size_t sum = 0;
    for (const auto& [ends, proxy] : ps_proxies_) sum += proxy->connections();
    return sum;
  }
  void expectItWasDisturbed() const {
    EXPECT_EQ(cuts() > 0, GetParam().cuts);
    EXPECT_EQ(connections() > made_before_, GetParam().is_made_anew);
  }

  size_t made_before_ = 0;  // connections, before the 51st step
};

// Two of three gradients make a step: ps/0 says which, and the others apply those.
TEST_P(BrokenPsLinks, AllPsTakeTheSameGradients) {
  ModelDeclaration model = modelOf(3, 3, true, 300);
  model.replication.replicas_to_aggregate = 2;
  write_ = writeSameGradients;
  const Parameters parameters = trainDisturbed(model, 3, cluster::Durability::kCheckpoint);
  EXPECT_NE(parameters[0][0], 0);
  EXPECT_EQ(parameters[1], parameters[0]);
  EXPECT_EQ(parameters[2], parameters[0]);
  expectItWasDisturbed();
}

TEST_P(BrokenPsLinks, ReplicasAreKept) {
  const ModelDeclaration model = modelOf(3, 2, true, 110);
  const Parameters calm = train(model, 2, false);
  Parameters replicas;
  if (GetParam().ends_calm)
    at_end_ = [&](RpcHarness& cluster) {
      for (uint32_t ps = 0; ps < 3; ++ps) replicas.push_back(cluster.replicaOf(ps, kElements));
    };
  EXPECT_EQ(trainDisturbed(model, 2, cluster::Durability::kReplica), calm);
  if (GetParam().ends_calm) {
    EXPECT_EQ(replicas, calm);
  }
  expectItWasDisturbed();
}

// Each update adds one, on the ps and in its replica.
TEST_P(BrokenPsLinks, ReplicasAreKeptOfAsynchronousUpdates) {
  const ModelDeclaration model = modelOf(3, 1, false, 110);
  Parameters replicas;
  if (GetParam().ends_calm)
    at_end_ = [&](RpcHarness& cluster) {
      for (uint32_t ps = 0; ps < 3; ++ps) replicas.push_back(cluster.replicaOf(ps, kElements));
    };
  const Parameters parameters = trainDisturbed(model, 1, cluster::Durability::kReplica);
  EXPECT_EQ(parameters[0], std::vector<float>(kElements, 110));
  if (GetParam().ends_calm) {
    EXPECT_EQ(replicas, parameters);
  }
  expectItWasDisturbed();
}

INSTANTIATE_TEST_SUITE_P(
    Networks, BrokenPsLinks,
    ::testing::Values(PsNetwork{"flaps", [](auto& proxy) { proxy.cutEvery(milliseconds(20)); },
                                [](auto& proxy, uint64_t step) {
                                  // A fast machine is through with the rest in less than that.
                                  if (step == 101) proxy.cutAfter(Way::kToServer, 1);
                                },
                                true, true, false},
                      PsNetwork{"in_single_bytes", [](auto& proxy) { proxy.setChunkMax(1); },
                                nullptr, false, false},
                      PsNetwork{"is_cut_in_questions", nullptr,
                                [](auto& proxy, uint64_t step) {
                                  proxy.cutAfter(Way::kToServer, 1 + step % 97);
                                }},
                      PsNetwork{"is_cut_in_answers", nullptr,
                                [](auto& proxy, uint64_t step) {
                                  proxy.cutAfter(Way::kToClient, 1 + step % 97);
                                }},
                      PsNetwork{"loses_questions", nullptr,
                                [](auto& proxy, uint64_t step) {
                                  if (step == 51) proxy.silence(Way::kToServer);
                                },
                                false},
                      PsNetwork{"loses_answers", nullptr,
                                [](auto& proxy, uint64_t step) {
                                  if (step == 51) proxy.silence(Way::kToClient);
                                },
                                false}),
    [](const auto& network) { return std::string(network.param.name); });

// Before the request, amid its header, its first and its last bytes, behind it; amid the answer.
TEST_F(BrokenLinks, AStepIsAppliedOnceWhereverItsConnectionIsCut) {
  constexpr size_t kGradient = kElements * sizeof(float);
  std::vector<size_t> places = {1, 8, 17, 100, 200, kGradient / 2};
  for (const size_t behind : {0, 64, 200, 400}) places.push_back(kGradient + behind);
  const std::vector<size_t> places_of_keys = {1, 8, 17, 40, 80, 120, 160, 200};
  for (const bool shares : {false, true}) {
    shares_ = shares;
    const std::vector<size_t>& cut_at = shares_ ? places_of_keys : places;
    const ModelDeclaration model = modelOf(1, 1, false, 2 * cut_at.size());
    const Parameters parameters = train(model, 1, true, [&](uint64_t step) {
      const Way way = step % 2 == 0 ? Way::kToServer : Way::kToClient;
      proxies_[0]->cutAfter(way, cut_at[step / 2]);
    });
    EXPECT_GE(cuts(), cut_at.size());
    EXPECT_EQ(parameters[0], std::vector<float>(kElements, static_cast<float>(model.steps)));
  }
}

// Half of a gradient may be there by then, or all of it, while the worker still writes the rest.
TEST_F(BrokenLinks, AGradientThatIsStreamedCountsOnceWhereverItsConnectionIsCut) {
  constexpr size_t kGradient = kStreamedElements * sizeof(float);
  const std::vector<size_t> places = {
      1, 100, kGradient / 8, kGradient / 2, kGradient - 1000, kGradient + 64, kGradient + 400};
  const ModelDeclaration model = modelOf(1, 1, false, 2 * places.size(), kStreamedElements);
  size_t cuts_before = 0;
  after_piece_ = [&](uint64_t step, size_t piece) {
    if (step % 2 == 1 || piece != 2 || places[step / 2] >= kGradient / 2) return;
    const auto end = std::chrono::steady_clock::now() + seconds(10);
    while (cuts() == cuts_before && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    EXPECT_GT(cuts(), cuts_before) << "the first half had left before the second was written";
  };
  const Parameters parameters = train(model, 1, true, [&](uint64_t step) {
    cuts_before = cuts();
    proxies_[0]->cutAfter(step % 2 == 0 ? Way::kToServer : Way::kToClient, places[step / 2]);
  });
  EXPECT_GE(cuts(), places.size());
  EXPECT_EQ(parameters[0], std::vector<float>(kStreamedElements, static_cast<float>(model.steps)));
}

TEST_F(BrokenLinks, FlappingCostsASyncJobThatStreamsNothingButTime) {
  const ModelDeclaration model = modelOf(2, 2, true, 300, kStreamedElements);
  const Parameters calm = train(model, 2, false);
  prepare_ = [this] {
    for (auto& proxy : proxies_) proxy->cutEvery(milliseconds(50));
  };
  EXPECT_EQ(train(model, 2, true), calm);
  EXPECT_GT(cuts(), 4u);
}

// In its question or its answer, from the hello to the last call: in the preamble, behind it, amid
// the message. What is cut on one worker's connection may be another call of the other one.
TEST_F(BrokenLinks, EveryCallHasItsEffectOnceWhereverItsConnectionIsCut) {
  const ModelDeclaration model = modelOf(2, 2, true, 3);
  const Parameters calm = train(model, 2, false);
  for (const Way way : {Way::kToServer, Way::kToClient})
    for (const size_t bytes : {1, 17, 150, 3000}) {
      SCOPED_TRACE(fmt::format("{} bytes {}", bytes, way == Way::kToServer ? "asked" : "answered"));
      before_call_ = [&] {
        for (auto& proxy : proxies_) proxy->cutAfter(way, bytes);
      };
      EXPECT_EQ(train(model, 2, true), calm);
      EXPECT_GE(cuts(), 8u);
    }
}

// The chief's calls, each cut once. What fails with its connection is tried again as a whole.
TEST_F(BrokenLinks, ACutIsTakenAndGoneBackToWhereverTheCallsForItAreCut) {
  const ModelDeclaration model = modelOf(1, 1, false, 10);
  constexpr CutName kCut{kFirstEpoch, 5};
  for (const Way way : {Way::kToServer, Way::kToClient})
    for (const size_t bytes : {17, 60, 150}) {
      SCOPED_TRACE(fmt::format("{} bytes {}", bytes, way == Way::kToServer ? "asked" : "answered"));
      RpcHarness cluster(1, 1, healingTimeouts(), cluster::Durability::kSnapshot);
      testing::FlakyProxy proxy(cluster.psAddress(0).port);
      cluster.via = [&](uint32_t, std::vector<cluster::Address>& ps) { ps[0].port = proxy.port(); };
      const auto client = cluster.connectRpc(0);
      wire::RpcCheckpointClient cuts(*client, 30);
      std::set<std::string> cut_calls;
      const auto cutOnce = [&](const std::string& call) {
        if (cut_calls.insert(call).second) proxy.cutAfter(way, bytes);
      };
      const auto insist = [&](const std::function<void()>& attempt) {
        for (int tries = 1;; ++tries) {
          try {
            cutOnce("held");
            EXPECT_EQ(cuts.held().at(0).epoch, kFirstEpoch);
            return attempt();
          } catch (const Error& error) {
            if (error.code() != ErrorCode::kUnavailable || tries == 10) throw;
          }
        }
      };
      const auto takeSnapshot = [&] {
        cutOnce("position");
        EXPECT_EQ(cuts.positions(true), std::vector<CutPosition>{{5}});
        cutOnce("cut");
        cuts.startCut({5}, kFirstEpoch);
        EXPECT_EQ(cuts.awaitCut(), 5u);
        cutOnce("snapshot");
        cuts.snapshot({kCut.epoch, kCut.step}, {5}, std::nullopt);
      };
      bool went_back = false;
      work(*client, model, 0, [&](uint64_t step) {
        if (step == 5 && !went_back) insist(takeSnapshot);
        if (step != 8 || std::exchange(went_back, true)) return;
        insist([&] {
          cutOnce("restore");
          cuts.restore({"", kCut.epoch, kCut.step, nextEpoch(kFirstEpoch, 1)});
        });
      });
      client->pull();
      EXPECT_EQ(client->parameters(0)[0], 10) << "gone back from 8 to 5";
      EXPECT_EQ(cut_calls.size(), 5u);
      EXPECT_GE(proxy.cuts(), 4u);
      client->finish();
    }
}

TEST_F(BrokenLinks, FlappingCostsASyncJobNothingButTime) {
  const ModelDeclaration model = modelOf(2, 2, true, 3000);
  const Parameters calm = train(model, 2, false);
  prepare_ = [this] {
    for (auto& proxy : proxies_) proxy->cutEvery(milliseconds(50));
  };
  EXPECT_EQ(train(model, 2, true), calm);
  EXPECT_GT(cuts(), 4u);
  shares_ = true;  // the arenas of a connection that broke may be read still, by either side
  EXPECT_EQ(train(model, 2, true), calm);
  EXPECT_GT(cuts(), 4u);
}

TEST_F(BrokenLinks, FlappingAppliesEveryAsynchronousUpdateOnce) {
  const ModelDeclaration model = modelOf(1, 2, false, 8000);
  prepare_ = [this] { proxies_[0]->cutEvery(milliseconds(50)); };
  for (const bool shares : {false, true}) {
    shares_ = shares;
    const Parameters parameters = train(model, 2, true);
    EXPECT_GT(cuts(), 4u);
    EXPECT_EQ(parameters[0], std::vector<float>(kElements, 8000));
  }
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
