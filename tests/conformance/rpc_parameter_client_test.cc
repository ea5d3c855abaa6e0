// The parameter client over RPC against the suite of its interface: real psd servers, each in a
// thread of its own, on real sockets.

#include <chrono>
#include <future>

#include "common/base/json.h"
#include "common/ps/epoch.h"
#include "common/ps/local_parameter_client.h"
#include "common/wire/arena_codec.h"
#include "common/wire/model_codec.h"
#include "common/wire/rpc_checkpoint_client.h"
#include "tests/conformance/async_hammer_suite.h"
#include "tests/conformance/bounded_suite.h"
#include "tests/conformance/overlap_suite.h"
#include "tests/conformance/rpc_harness.h"
#include "tests/conformance/sparse_rows_suite.h"
#include "tests/conformance/stream_suite.h"
#include "tests/conformance/wanted_rows_suite.h"

namespace dtf::ps {

namespace {

std::unique_ptr<ClusterHarness> makeRpcHarness(uint32_t ps_tasks, uint32_t workers) {
  return std::make_unique<RpcHarness>(ps_tasks, workers);
}

// Workers and ps read all arenas in each other's memory.
std::unique_ptr<ClusterHarness> makeSharingHarness(uint32_t ps_tasks, uint32_t workers) {
  auto harness = std::make_unique<RpcHarness>(ps_tasks, workers);
  harness->share_from_bytes = 0;
  return harness;
}

// Under `durability: replica`, which takes two ps.
std::unique_ptr<RpcHarness> replicatedHarness(uint32_t ps_tasks, uint32_t workers) {
  const auto durability =
      ps_tasks > 1 ? cluster::Durability::kReplica : cluster::Durability::kCheckpoint;
  return std::make_unique<RpcHarness>(ps_tasks, workers, shortTimeouts(), durability);
}

std::unique_ptr<ClusterHarness> makeReplicatedHarness(uint32_t ps_tasks, uint32_t workers) {
  return replicatedHarness(ps_tasks, workers);
}

std::unique_ptr<ClusterHarness> makeReplicatedSharingHarness(uint32_t ps_tasks, uint32_t workers) {
  auto harness = replicatedHarness(ps_tasks, workers);
  harness->share_from_bytes = 0;
  return harness;
}

// What travels is bfloat16, though memory could be shared.
std::unique_ptr<ClusterHarness> makeNarrowHarness(uint32_t ps_tasks, uint32_t workers) {
  auto harness = replicatedHarness(ps_tasks, workers);
  harness->share_from_bytes = 0;
  harness->stream_from_bytes = uint64_t{1} << 19;
  harness->transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
  return harness;
}

class LargeShards : public ParameterClientSuite {
 protected:
  // Sync training on two ps with shards of kElements, over the network and in this process.
  void expectTheBitsOfOneProcess(cluster::OptimizerSpec::Kind kind) {
    ModelDeclaration model = vectorModel(kPs, kElements, 0.01);
    model.optimizer = cluster::defaultOptimizer(kind);
    model.replication = {cluster::ReplicationSpec::Mode::kSync, kWorkers, kWorkers};
    model.steps = 4;
    const auto train = [](ParameterClient& client, uint32_t rank) {
      StepState state = client.pull();
      while (!state.done) {
        for (uint32_t ps = 0; ps < kPs; ++ps)
          for (uint32_t i = 0; i < kElements; ++i)
            client.gradients(ps)[i] =
                std::sin(static_cast<float>(i * (rank + 1) + ps + state.next_step));
        state = client.exchange(state.next_step, state.next_batch, 0);
      }
    };
    Clients clients = start(kPs, kWorkers, model, zeros(model));
    inThreads(clients, train);
    const SystemClock clock;
    LocalCluster local(kPs, kWorkers, clock);
    Clients locals;
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      locals.push_back(std::make_unique<LocalParameterClient>(local, rank));
      locals.back()->declare(model);
    }
    const auto values = zeros(model);
    locals[0]->initialise(std::vector<std::span<const float>>(values.begin(), values.end()),
                          kFirstEpoch);
    inThreads(locals, train);
    for (uint32_t ps = 0; ps < kPs; ++ps)
      EXPECT_EQ(std::memcmp(clients[0]->parameters(ps), locals[0]->parameters(ps),
                            kElements * sizeof(float)),
                0)
          << "ps/" << ps << ", optimizer " << cluster::optimizerName(kind);
  }

  static constexpr uint32_t kPs = 2, kWorkers = 2, kElements = 200'000;
};

// Large enough for the paths that small shards don't take: pooled receive buffers, updates on
// compute threads, and before them the measuring of norms.
TEST_P(LargeShards, TrainToTheBitsOfOneProcess) {
  expectTheBitsOfOneProcess(cluster::OptimizerSpec::Kind::kAdam);
  expectTheBitsOfOneProcess(cluster::OptimizerSpec::Kind::kLamb);
}

// In many blobs, as a shard of more than 16 GiB has, on connections that are limited accordingly.
constexpr uint64_t kSmallChunkBytes = 8192;

std::unique_ptr<ClusterHarness> makeChunkedHarness(uint32_t ps_tasks, uint32_t workers) {
  return std::make_unique<RpcHarness>(ps_tasks, workers, shortTimeouts(),
                                      cluster::Durability::kCheckpoint, RpcHarness::PsVia(),
                                      kSmallChunkBytes);
}

std::unique_ptr<ClusterHarness> makeChunkedReplicatedHarness(uint32_t ps_tasks, uint32_t workers) {
  return std::make_unique<RpcHarness>(ps_tasks, workers, shortTimeouts(),
                                      cluster::Durability::kReplica, RpcHarness::PsVia(),
                                      kSmallChunkBytes);
}

class ChunkedShards : public LargeShards {};

TEST_P(ChunkedShards, OfMoreThan64ChunksTrainToTheBitsOfOneProcess) {
  ASSERT_GT(wire::arenaChunks(kElements, kSmallChunkBytes), 64u);
  expectTheBitsOfOneProcess(cluster::OptimizerSpec::Kind::kAdam);
}

// What a worker reads and writes is its own, between its calls.
class ReadArenas : public ParameterClientSuite {
 protected:
  // 4 workers add one to each of many parameters, asynchronously. While one looks at what it was
  // given, the others go on; what it has pushed is nonsense as soon as that was answered.
  void expectWhole(uint32_t ps_tasks, uint64_t steps) {
    ModelDeclaration model = vectorModel(ps_tasks, kElements, 1.0);
    model.steps = steps;
    Clients clients = start(ps_tasks, 4, model, zeros(model));
    inThreads(clients, [&](ParameterClient& client, uint32_t) {
      StepState state = client.pull();
      std::vector<float> seen(ps_tasks);
      while (!state.done) {
        for (uint32_t ps = 0; ps < ps_tasks; ++ps) seen[ps] = client.parameters(ps)[0];
        for (int look = 0; look < 3; ++look)
          for (uint32_t ps = 0; ps < ps_tasks; ++ps)
            ASSERT_EQ(
                std::count(client.parameters(ps), client.parameters(ps) + kElements, seen[ps]),
                ssize_t{kElements})
                << "of one version, as long as they are read";
        for (uint32_t ps = 0; ps < ps_tasks; ++ps)
          std::fill_n(client.gradients(ps), kElements, -1.0F);
        state = client.exchange(state.next_step, state.next_batch, 0);
        for (uint32_t ps = 0; ps < ps_tasks; ++ps)
          std::fill_n(client.gradients(ps), kElements, std::nanf(""));
      }
      client.barrier("pushed");
      client.pull();
      for (uint32_t ps = 0; ps < ps_tasks; ++ps)
        EXPECT_EQ(std::count(client.parameters(ps), client.parameters(ps) + kElements,
                             static_cast<float>(steps)),
                  ssize_t{kElements});
      client.finish();
    });
  }

  static constexpr int64_t kElements = 1 << 17;
};

TEST_P(ReadArenas, AreWholeWhileOthersPush) {
  expectWhole(2, 400);
}

ModelDeclaration oneScalar() {
  ModelDeclaration model;
  model.layout = makeLayout({{"v", Shape{}, {{0, 0, 1}}}}, 1);
  model.steps = 1;
  return model;
}

// As a person asks: `dtf-launch status` shows it.
TEST(PsGate, ItsStatusCountsTheGradientsOfEachStaleness) {
  RpcHarness cluster(1, 2);
  ModelDeclaration model = oneScalar();
  model.steps = 100;
  std::vector<std::unique_ptr<ParameterClient>> workers;
  for (const uint32_t rank : {0, 1}) {
    workers.push_back(cluster.connect(rank));
    workers.back()->declare(model);
  }
  const std::vector<float> values(16);
  workers[0]->initialise(std::vector<std::span<const float>>{values}, kFirstEpoch);
  std::vector<StepState> states = {workers[0]->pull(), workers[1]->pull()};
  // Who pushes; how many updates by the other have come since it was answered.
  const std::vector<std::pair<uint32_t, uint64_t>> pushes = {{0, 0}, {0, 0}, {0, 0}, {1, 3},
                                                             {1, 0}, {0, 2}, {1, 1}, {0, 1}};
  for (const auto& [rank, staleness] : pushes) {
    states[rank] = workers[rank]->exchange(states[rank].next_step, states[rank].next_batch, 0);
    EXPECT_EQ(states[rank].staleness, staleness);
  }
  const Json status = statusOf(cluster.psAddress(0));
  std::vector<uint64_t> counts(StalenessHistogram::kBuckets);
  counts[0] = 4;
  counts[1] = 2;
  counts[2] = 1;
  counts[3] = 1;
  EXPECT_EQ(status["staleness_histogram"], Json(counts));
  EXPECT_EQ(status["staleness_max"], 3);
  EXPECT_EQ(status["staleness_sum"], 7);
  EXPECT_EQ(status["gradients_applied"], 8);
}

class Follower final : public schema::SyncFollower::Server {};

// ps/0's gate makes a follower of a ps that says hello.
TEST(PsGate, APsThatSaysHelloIsGivenTheLeader) {
  RpcHarness cluster(2, 1);
  net::Reactor reactor;
  const auto connection = connectTo(reactor, cluster.psAddress(0));
  auto request = connection->bootstrap().castAs<schema::PsGate>().peerRequest();
  auto hello = request.initHello();
  const wire::LinkOptions self{"conformance", {JobKind::kPs, 1}, Incarnation{1}, {}};
  wire::encodeHello(self, {JobKind::kPs, 0}, hello);
  request.setFollower(kj::heap<Follower>());
  EXPECT_NO_THROW(request.send().wait(reactor.wait_scope));
  auto again = connection->bootstrap().castAs<schema::PsGate>().peerRequest();
  wire::encodeHello(self, {JobKind::kPs, 1}, again.initHello());
  again.setFollower(kj::heap<Follower>());
  EXPECT_THROW(again.send().wait(reactor.wait_scope), kj::Exception) << "ps/1 was meant";
}

TEST(RpcCheckpointClient, PushesGoOnWhenTheHoldIsReleased) {
  RpcHarness cluster(1, 1);
  const auto client = cluster.connectRpc(0);
  client->declare(oneScalar());
  const std::vector<float> values(16);
  client->initialise(std::vector<std::span<const float>>{values}, kFirstEpoch);
  wire::RpcCheckpointClient checkpoints(*client, 30);
  EXPECT_EQ(checkpoints.held().at(0).epoch, kFirstEpoch);
  client->pull();
  EXPECT_EQ(checkpoints.positions(true), (std::vector<CutPosition>{{0}}));
  checkpoints.releaseHold();
  client->gradients(0)[0] = 1;
  EXPECT_TRUE(client->exchange(0, 0, 0).done);
}

TEST(RpcCheckpointClient, IsForTheChiefAlone) {
  RpcHarness cluster(1, 2);
  const auto client = cluster.connectRpc(1);
  client->declare(oneScalar());
  try {
    wire::RpcCheckpointClient checkpoints(*client, 30);
    checkpoints.held();
    FAIL() << "worker/1 supervises";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermission) << error.message();
  }
}

// Those of each process that goes are not written again, and in the end nobody has them.
TEST(RpcParameterClient, ArenasThatThePsNoLongerHasAreUnmapped) {
  RpcHarness cluster(1, 2);
  cluster.share_from_bytes = 0;
  ModelDeclaration model = oneScalar();
  model.steps = 1000;
  const auto stays = cluster.connectRpc(0);
  stays->declare(model);
  const std::vector<float> values(16);
  stays->initialise(std::vector<std::span<const float>>{values}, kFirstEpoch);
  StepState state = stays->pull();
  size_t mapped_max = 0;
  for (int i = 0; i < 20; ++i) {
    const auto goes = cluster.connectRpc(1);
    goes->declare(model);
    const StepState pulled = goes->pull();
    goes->exchange(pulled.next_step, pulled.next_batch, 0);
    EXPECT_TRUE(goes->TEST_sharesMemory());
    state = stays->exchange(state.next_step, state.next_batch, 0);
    mapped_max = std::max(mapped_max, stays->TEST_arenasMapped());
  }
  EXPECT_TRUE(stays->TEST_sharesMemory());
  EXPECT_GE(mapped_max, 1u);
  EXPECT_LE(mapped_max, 6u) << "of some 20 that there were";
  cluster.share_from_bytes = std::nullopt;
  const auto travels = cluster.connectRpc(1);
  travels->declare(model);
  travels->pull();
  EXPECT_FALSE(travels->TEST_sharesMemory());
}

TEST(RpcParameterClient, AWaitForInitialValuesEndsByItsDeadline) {
  cluster::Timeouts timeouts = shortTimeouts();
  timeouts.start_seconds = 2;
  RpcHarness cluster(1, 2, timeouts);
  const auto client = cluster.connectRpc(1);
  client->declare(oneScalar());
  try {
    client->waitInitialised();
    FAIL() << "nobody has initialised them";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadline) << error.message();
  }
}

// Of a sync step whose other worker evaluates for longer than a step may take; and of one that only
// stands still.
TEST(RpcParameterClient, WhoEvaluatesIsWaitedForWithoutADeadline) {
  cluster::Timeouts timeouts = shortTimeouts();
  timeouts.step_seconds = 2;
  RpcHarness cluster(1, 2, timeouts);
  ModelDeclaration model = oneScalar();
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 2};
  model.steps = 10;
  const auto chief = cluster.connectRpc(0), other = cluster.connectRpc(1);
  for (const auto& client : {chief.get(), other.get()}) client->declare(model);
  const std::vector<float> values(16);
  chief->initialise(std::vector<std::span<const float>>{values}, kFirstEpoch);
  const StepState due = chief->pull();
  other->pull();
  chief->setEvaluating(true);
  auto waits = std::async(std::launch::async, [&] {
    StepState state = other->exchange(due.next_step, 0, 0);
    return other->exchange(state.next_step, 0, 0);
  });
  EXPECT_EQ(waits.wait_for(std::chrono::seconds(9)), std::future_status::timeout)
      << "its step had a deadline";
  chief->setEvaluating(false);
  EXPECT_EQ(chief->exchange(due.next_step, 0, 0).global_step, 1u);
  try {
    waits.get();
    FAIL() << "the step after that has none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadline) << error.message();
  }
}

TEST(RpcParameterClient, RowsThatAreNoneAreNotBrought) {
  RpcHarness cluster(1, 1);
  ModelDeclaration model;
  model.layout = makeLayout({{"table", Shape{4, 2}, {{0, 0, 8}}, std::nullopt, true}}, 1);
  model.steps = 1;
  const auto client = cluster.connectRpc(0);
  client->declare(model);
  const std::vector<float> values(16);
  client->initialise(std::vector<std::span<const float>>{values}, kFirstEpoch);
  client->wantRows(0, {{1}, {4}});
  try {
    client->pull();
    FAIL() << "row 4 of 4 was brought";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_EQ(error.message(),
              "a bad request for rows: row 4 of a sparse variable, but the shard has 4 of it");
  }
}

// A number that bfloat16 hasn't, pushed and brought back; but a statistic, and what is asked for as
// it is, are not rounded.
TEST(RpcParameterClient, WhatTravelsAsBFloat16IsRounded) {
  RpcHarness cluster(1, 1);
  ModelDeclaration model;
  model.layout =
      makeLayout({{"v", Shape{16}, {{0, 0, 16}}}, {"mean", Shape{16}, {{0, 0, 16}}, 0.0}}, 1);
  model.optimizer.learning_rate = 1;
  model.steps = 10;
  model.replication.transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
  const auto client = cluster.connectRpc(0);
  client->declare(model);
  const std::vector<float> values(32, 1000.5F);
  client->initialise(std::vector<std::span<const float>>{values}, kFirstEpoch);
  const uint64_t v = model.layout.shards[0].slices[0].variable == 0 ? 0 : 16, mean = 16 - v;
  StepState state = client->pull();
  EXPECT_EQ(client->parameters(0)[v], 1000);
  EXPECT_EQ(client->parameters(0)[mean], 1000.5F);
  std::fill_n(client->gradients(0) + v, 16, -257.0F);
  std::fill_n(client->gradients(0) + mean, 16, 2000.25F);
  state = client->exchange(state.next_step, state.next_batch, 0);
  EXPECT_EQ(client->parameters(0)[v], 1256) << "1000.5 + 256";
  EXPECT_EQ(client->parameters(0)[mean], 2000.25F);
  EXPECT_FALSE(client->bringsWhole());
  client->pullWhole();
  EXPECT_EQ(client->whole(0)[v], 1256.5F);
  EXPECT_EQ(client->parameters(0)[v], 1256);
}

const auto kHarnesses = ::testing::Values(&makeRpcHarness, &makeSharingHarness,
                                          &makeReplicatedHarness, &makeReplicatedSharingHarness);
const auto kHarnessesAndNarrow =
    ::testing::Values(&makeRpcHarness, &makeSharingHarness, &makeReplicatedHarness,
                      &makeReplicatedSharingHarness, &makeNarrowHarness);

std::string harnessName(const ::testing::TestParamInfo<HarnessFactory>& info) {
  constexpr const char* kNames[] = {"Rpc", "Sharing", "Replicated", "ReplicatedSharing", "Narrow"};
  return kNames[info.index];
}

// It waits for leases, so once with memory and once without is enough.
INSTANTIATE_TEST_SUITE_P(Rpc, ParameterClientSuite,
                         ::testing::Values(&makeSharingHarness, &makeReplicatedHarness,
                                           &makeNarrowHarness));
INSTANTIATE_TEST_SUITE_P(Rpc, AsyncHammerSuite, kHarnesses, harnessName);
INSTANTIATE_TEST_SUITE_P(Rpc, BoundedSuite, kHarnessesAndNarrow, harnessName);
INSTANTIATE_TEST_SUITE_P(Rpc, OverlapSuite, kHarnessesAndNarrow, harnessName);
INSTANTIATE_TEST_SUITE_P(Rpc, SparseRowsSuite, kHarnessesAndNarrow, harnessName);
INSTANTIATE_TEST_SUITE_P(Rpc, WantedRowsSuite, kHarnessesAndNarrow, harnessName);
INSTANTIATE_TEST_SUITE_P(Rpc, StreamSuite, kHarnessesAndNarrow, harnessName);
INSTANTIATE_TEST_SUITE_P(Rpc, LargeShards, kHarnesses, harnessName);
INSTANTIATE_TEST_SUITE_P(Rpc, ChunkedShards,
                         ::testing::Values(&makeChunkedHarness, &makeChunkedReplicatedHarness));
INSTANTIATE_TEST_SUITE_P(Rpc, ReadArenas, kHarnesses, harnessName);

}  // namespace

}  // namespace dtf::ps
