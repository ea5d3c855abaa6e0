// The parameter client over RPC against the suite of its interface: real psd servers, each in a
// thread of its own, on real sockets.

#include "common/ps/epoch.h"
#include "common/ps/local_parameter_client.h"
#include "common/wire/model_codec.h"
#include "common/wire/rpc_checkpoint_client.h"
#include "tests/conformance/rpc_harness.h"

namespace dtf::ps {

namespace {

std::unique_ptr<ClusterHarness> makeRpcHarness(uint32_t ps_tasks, uint32_t workers) {
  return std::make_unique<RpcHarness>(ps_tasks, workers);
}

// The same under `durability: replica`, which takes two ps.
std::unique_ptr<ClusterHarness> makeReplicatedHarness(uint32_t ps_tasks, uint32_t workers) {
  const auto durability =
      ps_tasks > 1 ? cluster::Durability::kReplica : cluster::Durability::kCheckpoint;
  return std::make_unique<RpcHarness>(ps_tasks, workers, shortTimeouts(), durability);
}

// Large enough for the paths that small shards don't take: pooled receive buffers, updates on
// compute threads, and before them the measuring of norms.
TEST_P(ParameterClientSuite, LargeShardsTrainToTheBitsOfOneProcess) {
  for (const auto kind :
       {cluster::OptimizerSpec::Kind::kAdam, cluster::OptimizerSpec::Kind::kLamb}) {
    constexpr uint32_t kPs = 2, kWorkers = 2, kElements = 200'000;
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

ModelDeclaration oneScalar() {
  ModelDeclaration model;
  model.layout = makeLayout({{"v", Shape{}, {{0, 0, 1}}}}, 1);
  model.steps = 1;
  return model;
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

TEST(RpcParameterClient, AWaitForInitialValuesEndsByItsDeadline) {
  cluster::Timeouts timeouts = shortTimeouts();
  timeouts.start_seconds = 0.2;
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

INSTANTIATE_TEST_SUITE_P(Rpc, ParameterClientSuite, ::testing::Values(&makeRpcHarness));
INSTANTIATE_TEST_SUITE_P(Replicated, ParameterClientSuite,
                         ::testing::Values(&makeReplicatedHarness));

}  // namespace

}  // namespace dtf::ps
