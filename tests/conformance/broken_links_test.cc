// Jobs over a network that breaks: real psd servers and clients, with a proxy between them. Final
// parameters have the bits of an undisturbed run. In async mode each update adds one to every
// parameter, so that the parameters count how often each update was applied.

#include <fmt/core.h>

#include <set>
#include <string>
#include <utility>

#include "common/replication/epoch.h"
#include "common/wire/checkpoint/rpc_checkpoint_client.h"
#include "tests/conformance/broken_links_fixture.h"
#include "tests/support/repetitions.h"

namespace dtf::exchange {

namespace {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExchangeClientSuite);

// A disturbance of the network between ps, and the result that a job must show.
struct PsNetwork {
  const char* name;
  std::function<void(testing::FlakyProxy&)> prepare;
  // Called in every fifth step.
  std::function<void(testing::FlakyProxy&, uint64_t step)> disturb;
  bool cuts = true;
  bool is_made_anew = true;  // the ps connect again after the disturbance
  bool ends_calm = true;  // else a ps whose replica is read meets its keeper again, and is fenced
};

class BrokenPsLinks : public BrokenLinks, public ::testing::WithParamInterface<PsNetwork> {
 protected:
  // Returns the parameters of a job with that network between its ps.
  Parameters trainDisturbed(const arena::ModelDeclaration& model, uint32_t workers,
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

  size_t made_before_ = 0;  // connections before the 51st step
};

// Two of three gradients make a step: ps/0 chooses them, and the other ps apply the same two.
TEST_P(BrokenPsLinks, AllPsTakeTheSameGradients) {
  arena::ModelDeclaration model = modelOf(3, 3, true, 300);
  model.replication.replicas_to_aggregate = 2;
  write_ = writeSameGradients;
  const Parameters parameters = trainDisturbed(model, 3, cluster::Durability::kCheckpoint);
  EXPECT_NE(parameters[0][0], 0);
  EXPECT_EQ(parameters[1], parameters[0]);
  EXPECT_EQ(parameters[2], parameters[0]);
  expectItWasDisturbed();
}

TEST_P(BrokenPsLinks, ReplicasAreKept) {
  const arena::ModelDeclaration model = modelOf(3, 2, true, 110);
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
  const arena::ModelDeclaration model = modelOf(3, 1, false, 110);
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
                                  // A fast machine finishes the rest sooner.
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

// Cuts before the request, amid its header, in its first and its last bytes, and behind it; and
// amid the reply.
TEST_F(BrokenLinks, AStepIsAppliedOnceWhereverItsConnectionIsCut) {
  constexpr size_t kGradient = kElements * sizeof(float);
  std::vector<size_t> places = {1, 8, 17, 100, 200, kGradient / 2};
  for (const size_t behind : {0, 64, 200, 400}) places.push_back(kGradient + behind);
  const std::vector<size_t> places_of_keys = {1, 8, 17, 40, 80, 120, 160, 200};
  exchanges_in_memory_ = false;
  for (const bool shares : {false, true}) {
    shares_ = shares;
    const std::vector<size_t>& cut_at = shares_ ? places_of_keys : places;
    const arena::ModelDeclaration model = modelOf(1, 1, false, 2 * cut_at.size());
    const Parameters parameters = train(model, 1, true, [&](uint64_t step) {
      const Way way = step % 2 == 0 ? Way::kToServer : Way::kToClient;
      proxies_[0]->cutAfter(way, cut_at[step / 2]);
    });
    EXPECT_GE(cuts(), cut_at.size());
    EXPECT_EQ(parameters[0], std::vector<float>(kElements, static_cast<float>(model.steps)));
  }
}

// The pages of a connection that ended are not looked at any more, whatever is written there.
TEST_F(BrokenLinks, AStepWithoutAMessageIsAppliedOnceWhenItsConnectionBreaks) {
  shares_ = true;
  const arena::ModelDeclaration sync = modelOf(2, 2, true, 1000);
  const Parameters calm = train(sync, 2, false);
  const BeforeStep cut = [this](uint64_t step) {
    if (step % 100 != 50) return;
    testing::FlakyProxy& proxy = *proxies_[step / 100 % 2];
    proxy.refuse(true);  // cuts all connections
    proxy.refuse(false);
  };
  EXPECT_EQ(train(sync, 2, true, cut), calm);
  EXPECT_GE(cuts(), 5u);
  const arena::ModelDeclaration async = modelOf(2, 2, false, 1000);
  EXPECT_EQ(train(async, 2, true, cut),
            Parameters(2, std::vector<float>(kElements, static_cast<float>(async.steps))));
  EXPECT_GE(cuts(), 5u);
}

// A model whose shards travel in kStreamedElements * 4 bytes each.
arena::ModelDeclaration streamedModel(uint32_t ps_tasks, uint32_t workers, bool sync,
                                      uint64_t steps, bool narrows) {
  arena::ModelDeclaration model =
      modelOf(ps_tasks, workers, sync, steps, (narrows ? 2 : 1) * kStreamedElements);
  if (narrows)
    model.replication.transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
  return model;
}

// When the connection breaks, half of a gradient may have arrived, or all of it.
TEST_F(BrokenLinks, AGradientThatIsStreamedCountsOnceWhereverItsConnectionIsCut) {
  constexpr size_t kGradient = kStreamedElements * sizeof(float);
  const std::vector<size_t> places = {
      1, 100, kGradient / 8, kGradient / 2, kGradient - 1000, kGradient + 64, kGradient + 400};
  for (const bool narrows : {false, true}) {
    const arena::ModelDeclaration model = streamedModel(1, 1, false, 2 * places.size(), narrows);
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
    EXPECT_EQ(parameters[0],
              std::vector<float>(model.layout.shards[0].elements, static_cast<float>(model.steps)));
  }
}

// A reply that was lost on its way may have been a change of the worker's parameters: its
// repetition is one of the same. Each gradient follows from the parameters, so a wrong one would
// show.
TEST_F(BrokenLinks, ChangesOfParametersAddUpWhereverTheConnectionIsCut) {
  constexpr size_t kNumbers = 4096, kChange = kNumbers / 4;
  const std::vector<size_t> places = {1, 17, 200, kChange / 2, kChange + 64, kChange + 400};
  write_ = [](ExchangeClient& client, const arena::ModelDeclaration&, uint32_t, uint64_t step) {
    const float* const parameters = client.view(Values::kParameters, 0);
    for (size_t i = 0; i < kNumbers; ++i)
      client.gradients(0)[i] = 0.1F * parameters[i] +
                               static_cast<float>((i * 7919 + step * 104729) % 1000) / 1000 - 0.4F;
  };
  arena::ModelDeclaration model = modelOf(1, 1, false, 6 * places.size(), kNumbers);
  for (const double share : {0.0, 0.02}) {
    using Dtype = cluster::ReplicationSpec::TransferDtype;
    model.replication.transfer_dtype = share == 0 ? Dtype::kInt8 : Dtype::kTopK;
    model.replication.transfer_top_k = share;
    const Parameters calm = train(model, 1, false);
    EXPECT_EQ(train(model, 1, true,
                    [&](uint64_t step) {
                      if (step % 3 != 1) return;
                      proxies_[0]->cutAfter(step % 2 == 0 ? Way::kToServer : Way::kToClient,
                                            places[step / 6]);
                    }),
              calm);
    EXPECT_GE(cuts(), places.size());
  }
}

// The reply after the cut has the rows that were named in the exchange before it.
TEST_F(BrokenLinks, TheRowsThatWereAskedForComeWhereverTheConnectionIsCut) {
  constexpr uint32_t kRows = 8;
  arena::ModelDeclaration model = modelOf(1, 1, false, 64);
  model.layout =
      arena::makeLayout({{"dense", Shape{16}, {{0, 0, 16}}},
                         {"table", Shape{kRows, 2}, {{0, 0, 2 * kRows}}, std::nullopt, true}},
                        1);
  uint32_t compared = 0;
  // Each step adds one to the next row in turn.
  write_ = [&](ExchangeClient& client, const arena::ModelDeclaration&, uint32_t, uint64_t step) {
    const auto row = static_cast<uint32_t>(step % kRows), next = (row + 1) % kRows;
    const float* const at = client.view(Values::kParameters, 0) + 16 + 2 * row;
    EXPECT_EQ(std::vector<float>(at, at + 2),
              std::vector<float>(2, static_cast<float>(step / kRows)))
        << "step " << step;
    EXPECT_EQ(client.traits().has_whole, step == 0);
    ++compared;
    client.setRows(RowsOf::kGradient, 0, {{1}, {row}});
    std::fill_n(client.gradients(0), 16, -1.0F);
    std::fill_n(client.gradients(0) + 17, 2, -1.0F);
    client.setRows(RowsOf::kParameters, 0, {{1}, {next}});
  };
  const Parameters parameters = train(model, 1, true, [&](uint64_t step) {
    proxies_[0]->cutAfter(step % 2 == 0 ? Way::kToServer : Way::kToClient, 1 + 7 * step);
  });
  EXPECT_GE(cuts(), 32u);
  EXPECT_EQ(compared, model.steps);
  std::vector<float> due(model.layout.shards[0].elements, 0.0F);
  std::fill_n(due.begin(), 16, 64.0F);
  std::fill_n(due.begin() + 16, 2 * kRows, 8.0F);
  EXPECT_EQ(parameters[0], due);
}

TEST_F(BrokenLinks, FlappingCostsAStreamedSyncJobNothingButTime) {
  const arena::ModelDeclaration model = modelOf(2, 2, true, 300, kStreamedElements);
  const Parameters calm = train(model, 2, false);
  prepare_ = [this] {
    for (auto& proxy : proxies_) proxy->cutEvery(milliseconds(50));
  };
  EXPECT_EQ(train(model, 2, true, cutsAtLeast(300)), calm);
  EXPECT_GT(cuts(), 4u);
}

// Cuts each request and each reply, from the hello to the last call: in the preamble, behind it,
// amid the message. The same byte may belong to different calls on two workers' connections.
TEST_F(BrokenLinks, EveryCallHasItsEffectOnceWhereverItsConnectionIsCut) {
  const arena::ModelDeclaration model = modelOf(2, 2, true, 3);
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

// Cuts each of the chief's calls once. An attempt that fails is repeated as a whole.
TEST_F(BrokenLinks, ACutIsTakenAndGoneBackToWhereverTheCallsForItAreCut) {
  const arena::ModelDeclaration model = modelOf(1, 1, false, 10);
  constexpr checkpoint::CutName kCut{replication::kFirstEpoch, 5};
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
            // A restore may have taken effect although its reply was cut off.
            const uint64_t epoch = cuts.held().at(0).epoch;
            EXPECT_TRUE(epoch == replication::kFirstEpoch ||
                        (cut_calls.contains("restore") &&
                         epoch == replication::nextEpoch(replication::kFirstEpoch, 1)))
                << epoch;
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
        cuts.startCut({5}, replication::kFirstEpoch);
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
          cuts.restore(
              {"", kCut.epoch, kCut.step, replication::nextEpoch(replication::kFirstEpoch, 1)});
        });
      });
      client->pull();
      EXPECT_EQ(client->view(Values::kParameters, 0)[0], 10) << "gone back from 8 to 5";
      EXPECT_EQ(cut_calls.size(), 5u);
      EXPECT_GE(proxy.cuts(), 4u);
      client->job().leave();
    }
}

TEST_F(BrokenLinks, FlappingCostsASyncJobNothingButTime) {
  constexpr uint64_t kSteps = dtf::testing::repetitions(3000u);
  const arena::ModelDeclaration model = modelOf(2, 2, true, kSteps);
  const Parameters calm = train(model, 2, false);
  prepare_ = [this] {
    for (auto& proxy : proxies_) proxy->cutEvery(milliseconds(50));
  };
  EXPECT_EQ(train(model, 2, true, cutsAtLeast(kSteps)), calm);
  EXPECT_GT(cuts(), 4u);
  shares_ = true;  // after a break, either side may still read the arenas of the old connection
  EXPECT_EQ(train(model, 2, true, cutsAtLeast(kSteps)), calm);
  EXPECT_GT(cuts(), 4u);
}

TEST_F(BrokenLinks, FlappingAppliesEveryAsynchronousUpdateOnce) {
  const arena::ModelDeclaration model = modelOf(1, 2, false, 8000);
  prepare_ = [this] { proxies_[0]->cutEvery(milliseconds(50)); };
  for (const bool shares : {false, true}) {
    shares_ = shares;
    const Parameters parameters = train(model, 2, true, cutsAtLeast(4000));
    EXPECT_GT(cuts(), 4u);
    EXPECT_EQ(parameters[0], std::vector<float>(kElements, 8000));
  }
}

TEST_F(BrokenLinks, SingleBytesAreEnough) {
  const arena::ModelDeclaration model = modelOf(1, 1, false, 2);
  prepare_ = [this] { proxies_[0]->setChunkMax(1); };
  EXPECT_EQ(train(model, 1, true)[0], std::vector<float>(kElements, 2));
}

// Cut one way only: the ps receives from the worker, but the worker receives nothing; and the other
// way round.
TEST_F(BrokenLinks, ALinkThatIsSilentOneWayIsMadeAnew) {
  for (const Way way : {Way::kToClient, Way::kToServer}) {
    const arena::ModelDeclaration model = modelOf(1, 1, false, 10);
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
  const arena::ModelDeclaration model = modelOf(1, 1, false, 1000);
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

}  // namespace dtf::exchange
