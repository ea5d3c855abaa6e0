// What a job makes of a network that breaks: real psd servers and clients, and between them a
// proxy. Final parameters are compared to the bit with those of a run that nobody disturbed; in
// async mode each update moves every parameter by one, so that they count how often each was
// applied.

#include <fmt/core.h>

#include <set>
#include <string>
#include <utility>

#include "common/ps/epoch.h"
#include "common/wire/rpc_checkpoint_client.h"
#include "tests/conformance/broken_links_fixture.h"
#include "tests/support/repetitions.h"

namespace dtf::ps {

namespace {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ParameterClientSuite);

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

// Of which as many bytes are sent.
ModelDeclaration streamedModel(uint32_t ps_tasks, uint32_t workers, bool sync, uint64_t steps,
                               bool narrows) {
  ModelDeclaration model =
      modelOf(ps_tasks, workers, sync, steps, (narrows ? 2 : 1) * kStreamedElements);
  if (narrows)
    model.replication.transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
  return model;
}

// Half of a gradient may be there by then, or all of it, while the worker still writes the rest.
TEST_F(BrokenLinks, AGradientThatIsStreamedCountsOnceWhereverItsConnectionIsCut) {
  constexpr size_t kGradient = kStreamedElements * sizeof(float);
  const std::vector<size_t> places = {
      1, 100, kGradient / 8, kGradient / 2, kGradient - 1000, kGradient + 64, kGradient + 400};
  for (const bool narrows : {false, true}) {
    const ModelDeclaration model = streamedModel(1, 1, false, 2 * places.size(), narrows);
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

// The answer that comes after all has the rows that were named in the exchange before the cut.
TEST_F(BrokenLinks, TheRowsThatWereAskedForComeWhereverTheConnectionIsCut) {
  constexpr uint32_t kRows = 8;
  ModelDeclaration model = modelOf(1, 1, false, 64);
  model.layout = makeLayout({{"dense", Shape{16}, {{0, 0, 16}}},
                             {"table", Shape{kRows, 2}, {{0, 0, 2 * kRows}}, std::nullopt, true}},
                            1);
  uint32_t compared = 0;
  // Each step adds one to a row, the next one in turn.
  write_ = [&](ParameterClient& client, const ModelDeclaration&, uint32_t, uint64_t step) {
    const auto row = static_cast<uint32_t>(step % kRows), next = (row + 1) % kRows;
    const float* const at = client.parameters(0) + 16 + 2 * row;
    EXPECT_EQ(std::vector<float>(at, at + 2),
              std::vector<float>(2, static_cast<float>(step / kRows)))
        << "step " << step;
    EXPECT_EQ(client.bringsWhole(), step == 0);
    ++compared;
    client.setRows(0, std::vector<uint32_t>{1});
    std::fill_n(client.gradients(0), 16, -1.0F);
    std::memcpy(client.gradients(0) + 16, &row, sizeof(row));
    std::fill_n(client.gradients(0) + 17, 2, -1.0F);
    client.wantRows(0, {{1}, {next}});
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
  const ModelDeclaration model = modelOf(2, 2, true, 300, kStreamedElements);
  const Parameters calm = train(model, 2, false);
  prepare_ = [this] {
    for (auto& proxy : proxies_) proxy->cutEvery(milliseconds(50));
  };
  EXPECT_EQ(train(model, 2, true, cutsAtLeast(300)), calm);
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
            // A restore may have had its effect although its answer was cut off.
            const uint64_t epoch = cuts.held().at(0).epoch;
            EXPECT_TRUE(epoch == kFirstEpoch ||
                        (cut_calls.contains("restore") && epoch == nextEpoch(kFirstEpoch, 1)))
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
  constexpr uint64_t kSteps = dtf::testing::repetitions(3000u);
  const ModelDeclaration model = modelOf(2, 2, true, kSteps);
  const Parameters calm = train(model, 2, false);
  prepare_ = [this] {
    for (auto& proxy : proxies_) proxy->cutEvery(milliseconds(50));
  };
  EXPECT_EQ(train(model, 2, true, cutsAtLeast(kSteps)), calm);
  EXPECT_GT(cuts(), 4u);
  shares_ = true;  // the arenas of a connection that broke may be read still, by either side
  EXPECT_EQ(train(model, 2, true, cutsAtLeast(kSteps)), calm);
  EXPECT_GT(cuts(), 4u);
}

TEST_F(BrokenLinks, FlappingAppliesEveryAsynchronousUpdateOnce) {
  const ModelDeclaration model = modelOf(1, 2, false, 8000);
  prepare_ = [this] { proxies_[0]->cutEvery(milliseconds(50)); };
  for (const bool shares : {false, true}) {
    shares_ = shares;
    const Parameters parameters = train(model, 2, true, cutsAtLeast(4000));
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
