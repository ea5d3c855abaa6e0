// The exchange client over RPC against the suite of its interface: real psd servers on real
// sockets, each in a thread of its own.

#include <chrono>
#include <future>

#include "common/base/json.h"
#include "common/exchange/local_exchange_client.h"
#include "common/replication/epoch.h"
#include "common/wire/arena_codec.h"
#include "common/wire/checkpoint/rpc_checkpoint_client.h"
#include "common/wire/model_codec.h"
#include "tests/conformance/async_hammer_suite.h"
#include "tests/conformance/bounded_suite.h"
#include "tests/conformance/overlap_suite.h"
#include "tests/conformance/rpc_harness.h"
#include "tests/conformance/sparse_rows_suite.h"
#include "tests/conformance/stream_suite.h"
#include "tests/conformance/wanted_rows_suite.h"

namespace dtf::exchange {

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

// Under `durability: replica`, which needs two ps.
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

// Transfers are bfloat16, although both sides could share memory.
std::unique_ptr<ClusterHarness> makeNarrowHarness(uint32_t ps_tasks, uint32_t workers) {
  auto harness = replicatedHarness(ps_tasks, workers);
  harness->share_from_bytes = 0;
  harness->stream_from_bytes = uint64_t{1} << 19;
  harness->transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
  return harness;
}

// Gradients and changes are int8. The suites send equal numbers, which int8 has.
std::unique_ptr<ClusterHarness> makeLossyHarness(uint32_t ps_tasks, uint32_t workers) {
  auto harness = replicatedHarness(ps_tasks, workers);
  harness->stream_from_bytes = uint64_t{1} << 18;
  harness->transfer_dtype = cluster::ReplicationSpec::TransferDtype::kInt8;
  return harness;
}

class LargeShards : public ExchangeClientSuite {
 protected:
  // Sync training on two ps with shards of kElements, over the network and in this process.
  void expectTheBitsOfOneProcess(cluster::OptimizerSpec::Kind kind) {
    arena::ModelDeclaration model = vectorModel(kPs, kElements, 0.01);
    model.optimizer = cluster::defaultOptimizer(kind);
    model.replication = {cluster::ReplicationSpec::Mode::kSync, kWorkers, kWorkers};
    model.steps = 4;
    const auto train = [](ExchangeClient& client, uint32_t rank) {
      replication::StepState state = client.pull();
      while (!state.done) {
        for (uint32_t ps = 0; ps < kPs; ++ps)
          for (uint32_t i = 0; i < kElements; ++i)
            client.gradients(ps)[i] =
                std::sin(static_cast<float>(i * (rank + 1) + ps + state.next_step));
        state = pushPull(client, state.next_step, state.next_batch, 0);
      }
    };
    Clients clients = start(kPs, kWorkers, model, zeros(model));
    inThreads(clients, train);
    const SystemClock clock;
    LocalCluster local(kPs, kWorkers, clock);
    Clients locals;
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      locals.push_back(std::make_unique<LocalExchangeClient>(local, rank));
      locals.back()->declare(model);
    }
    const auto values = zeros(model);
    locals[0]->job().initialise(std::vector<std::span<const float>>(values.begin(), values.end()),
                                replication::kFirstEpoch);
    inThreads(locals, train);
    for (uint32_t ps = 0; ps < kPs; ++ps)
      EXPECT_EQ(std::memcmp(clients[0]->view(Values::kParameters, ps),
                            locals[0]->view(Values::kParameters, ps), kElements * sizeof(float)),
                0)
          << "ps/" << ps << ", optimizer " << cluster::optimizerName(kind);
  }

  static constexpr uint32_t kPs = 2, kWorkers = 2, kElements = 200'000;
};

// Large enough for the paths that small shards don't take: pooled receive buffers, updates on
// compute threads, and the norms before them.
TEST_P(LargeShards, TrainToTheBitsOfOneProcess) {
  expectTheBitsOfOneProcess(cluster::OptimizerSpec::Kind::kAdam);
  expectTheBitsOfOneProcess(cluster::OptimizerSpec::Kind::kLamb);
}

// Many blobs, as for a shard of more than 16 GiB, on connections with the same limits.
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

// Between its calls, a worker alone owns the arenas that it reads and writes.
class ReadArenas : public ExchangeClientSuite {
 protected:
  // 4 workers add one to each of many parameters, asynchronously. While one checks its parameters,
  // the others go on. Once its push is answered, it fills the gradient with nonsense.
  void expectWhole(uint32_t ps_tasks, uint64_t steps) {
    arena::ModelDeclaration model = vectorModel(ps_tasks, kElements, 1.0);
    model.steps = steps;
    Clients clients = start(ps_tasks, 4, model, zeros(model));
    inThreads(clients, [&](ExchangeClient& client, uint32_t) {
      replication::StepState state = client.pull();
      std::vector<float> seen(ps_tasks);
      while (!state.done) {
        for (uint32_t ps = 0; ps < ps_tasks; ++ps)
          seen[ps] = client.view(Values::kParameters, ps)[0];
        for (int look = 0; look < 3; ++look)
          for (uint32_t ps = 0; ps < ps_tasks; ++ps)
            ASSERT_EQ(std::count(client.view(Values::kParameters, ps),
                                 client.view(Values::kParameters, ps) + kElements, seen[ps]),
                      ssize_t{kElements})
                << "of one version, as long as they are read";
        for (uint32_t ps = 0; ps < ps_tasks; ++ps)
          std::fill_n(client.gradients(ps), kElements, -1.0F);
        state = pushPull(client, state.next_step, state.next_batch, 0);
        for (uint32_t ps = 0; ps < ps_tasks; ++ps)
          std::fill_n(client.gradients(ps), kElements, std::nanf(""));
      }
      client.job().barrier("pushed");
      client.pull();
      for (uint32_t ps = 0; ps < ps_tasks; ++ps)
        EXPECT_EQ(
            std::count(client.view(Values::kParameters, ps),
                       client.view(Values::kParameters, ps) + kElements, static_cast<float>(steps)),
            ssize_t{kElements});
      client.job().leave();
    });
  }

  static constexpr int64_t kElements = 1 << 17;
};

TEST_P(ReadArenas, AreWholeWhileOthersPush) {
  expectWhole(2, 400);
}

arena::ModelDeclaration oneScalar() {
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"v", Shape{}, {{0, 0, 1}}}}, 1);
  model.steps = 1;
  return model;
}

// `dtf-launch status` shows it.
TEST(PsGate, ItsStatusCountsTheGradientsOfEachStaleness) {
  RpcHarness cluster(1, 2);
  arena::ModelDeclaration model = oneScalar();
  model.steps = 100;
  std::vector<std::unique_ptr<ExchangeClient>> workers;
  for (const uint32_t rank : {0, 1}) {
    workers.push_back(cluster.connect(rank));
    workers.back()->declare(model);
  }
  const std::vector<float> values(16);
  workers[0]->job().initialise(std::vector<std::span<const float>>{values},
                               replication::kFirstEpoch);
  std::vector<replication::StepState> states = {workers[0]->pull(), workers[1]->pull()};
  // The worker that pushes; the number of the other's updates since its last reply.
  const std::vector<std::pair<uint32_t, uint64_t>> pushes = {{0, 0}, {0, 0}, {0, 0}, {1, 3},
                                                             {1, 0}, {0, 2}, {1, 1}, {0, 1}};
  for (const auto& [rank, staleness] : pushes) {
    states[rank] = pushPull(*workers[rank], states[rank].next_step, states[rank].next_batch, 0);
    EXPECT_EQ(states[rank].staleness, staleness);
  }
  const Json status = statusOf(cluster.psAddress(0));
  std::vector<uint64_t> counts(replication::StalenessHistogram::kBuckets);
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

// ps/0's gate makes a ps that says hello a follower.
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
  client->job().initialise(std::vector<std::span<const float>>{values}, replication::kFirstEpoch);
  wire::RpcCheckpointClient checkpoints(*client, 30);
  EXPECT_EQ(checkpoints.held().at(0).epoch, replication::kFirstEpoch);
  client->pull();
  EXPECT_EQ(checkpoints.positions(true), (std::vector<CutPosition>{{0}}));
  checkpoints.releaseHold();
  client->gradients(0)[0] = 1;
  EXPECT_TRUE(pushPull(*client, 0, 0, 0).done);
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

// The arenas of an ended process are not written again, and in the end both sides unmap them.
TEST(RpcExchangeClient, ArenasThatThePsNoLongerHasAreUnmapped) {
  RpcHarness cluster(1, 2);
  cluster.share_from_bytes = 0;
  arena::ModelDeclaration model = oneScalar();
  model.steps = 1000;
  const auto stays = cluster.connectRpc(0);
  stays->declare(model);
  const std::vector<float> values(16);
  stays->initialise(std::vector<std::span<const float>>{values}, replication::kFirstEpoch);
  replication::StepState state = stays->pull();
  size_t mapped_max = 0;
  for (int i = 0; i < 20; ++i) {
    const auto goes = cluster.connectRpc(1);
    goes->declare(model);
    const replication::StepState pulled = goes->pull();
    pushPull(*goes, pulled.next_step, pulled.next_batch, 0);
    EXPECT_TRUE(goes->TEST_sharesMemory());
    state = pushPull(*stays, state.next_step, state.next_batch, 0);
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

TEST(RpcExchangeClient, AWaitForInitialValuesEndsByItsDeadline) {
  cluster::Timeouts timeouts = shortTimeouts();
  timeouts.start_seconds = 2;
  RpcHarness cluster(1, 2, timeouts);
  const auto client = cluster.connectRpc(1);
  client->declare(oneScalar());
  try {
    client->job().waitInitialised();
    FAIL() << "nobody has initialised them";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadline) << error.message();
  }
}

// The other worker of a sync step evaluates for longer than a step may take; the deadline still
// holds for a worker that just stands still.
TEST(RpcExchangeClient, WhoEvaluatesIsWaitedForWithoutADeadline) {
  cluster::Timeouts timeouts = shortTimeouts();
  timeouts.step_seconds = 2;
  RpcHarness cluster(1, 2, timeouts);
  arena::ModelDeclaration model = oneScalar();
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 2};
  model.steps = 10;
  const auto chief = cluster.connectRpc(0), other = cluster.connectRpc(1);
  for (const auto& client : {chief.get(), other.get()}) client->declare(model);
  const std::vector<float> values(16);
  chief->initialise(std::vector<std::span<const float>>{values}, replication::kFirstEpoch);
  const replication::StepState due = chief->pull();
  other->pull();
  chief->setEvaluating(true);
  auto waits = std::async(std::launch::async, [&] {
    replication::StepState state = pushPull(*other, due.next_step, 0, 0);
    return pushPull(*other, state.next_step, 0, 0);
  });
  EXPECT_EQ(waits.wait_for(std::chrono::seconds(9)), std::future_status::timeout)
      << "its step had a deadline";
  chief->setEvaluating(false);
  EXPECT_EQ(pushPull(*chief, due.next_step, 0, 0).global_step, 1u);
  try {
    waits.get();
    FAIL() << "the step after that has none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadline) << error.message();
  }
}

TEST(RpcExchangeClient, RowsThatAreNoneAreNotBrought) {
  RpcHarness cluster(1, 1);
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"table", Shape{4, 2}, {{0, 0, 8}}, std::nullopt, true}}, 1);
  model.steps = 1;
  const auto client = cluster.connectRpc(0);
  client->declare(model);
  const std::vector<float> values(16);
  client->job().initialise(std::vector<std::span<const float>>{values}, replication::kFirstEpoch);
  client->setRows(RowsOf::kParameters, 0, {{1}, {4}});
  try {
    client->pull();
    FAIL() << "row 4 of 4 was brought";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_EQ(error.message(),
              "a bad request for rows: row 4 of a sparse variable, but the shard has 4 of it");
  }
}

// A number without an exact bfloat16 is rounded in the push and in the reply. A statistic, and
// parameters fetched unrounded, are not.
TEST(RpcExchangeClient, WhatTravelsAsBFloat16IsRounded) {
  RpcHarness cluster(1, 1);
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout(
      {{"v", Shape{16}, {{0, 0, 16}}}, {"mean", Shape{16}, {{0, 0, 16}}, 0.0}}, 1);
  model.optimizer.learning_rate = 1;
  model.steps = 10;
  model.replication.transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
  const auto client = cluster.connectRpc(0);
  client->declare(model);
  const std::vector<float> values(32, 1000.5F);
  client->job().initialise(std::vector<std::span<const float>>{values}, replication::kFirstEpoch);
  const uint64_t v = model.layout.shards[0].slices[0].variable == 0 ? 0 : 16, mean = 16 - v;
  replication::StepState state = client->pull();
  EXPECT_EQ(client->view(Values::kParameters, 0)[v], 1000);
  EXPECT_EQ(client->view(Values::kParameters, 0)[mean], 1000.5F);
  std::fill_n(client->gradients(0) + v, 16, -257.0F);
  std::fill_n(client->gradients(0) + mean, 16, 2000.25F);
  state = pushPull(*client, state.next_step, state.next_batch, 0);
  EXPECT_EQ(client->view(Values::kParameters, 0)[v], 1256) << "1000.5 + 256";
  EXPECT_EQ(client->view(Values::kParameters, 0)[mean], 2000.25F);
  EXPECT_FALSE(client->traits().has_whole);
  client->pull(Values::kWhole);
  EXPECT_EQ(client->view(Values::kWhole, 0)[v], 1256.5F);
  EXPECT_EQ(client->view(Values::kParameters, 0)[v], 1256);
}

const auto kHarnesses = ::testing::Values(&makeRpcHarness, &makeSharingHarness,
                                          &makeReplicatedHarness, &makeReplicatedSharingHarness);
const auto kHarnessesAndNarrow =
    ::testing::Values(&makeRpcHarness, &makeSharingHarness, &makeReplicatedHarness,
                      &makeReplicatedSharingHarness, &makeNarrowHarness, &makeLossyHarness);

std::string harnessName(const ::testing::TestParamInfo<HarnessFactory>& info) {
  constexpr const char* kNames[] = {"Rpc",    "Sharing", "Replicated", "ReplicatedSharing",
                                    "Narrow", "Lossy"};
  return kNames[info.index];
}

// It waits for leases, so once with shared memory and once without is enough.
INSTANTIATE_TEST_SUITE_P(Rpc, ExchangeClientSuite,
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

}  // namespace dtf::exchange
