// The exchange client over remote memory against the suites of its interface: real psd servers,
// and UCX over the transports that need no card.

#include <cstdlib>

#include "common/net/channels/remote_memory.h"
#include "tests/conformance/async_hammer_suite.h"
#include "tests/conformance/bounded_suite.h"
#include "tests/conformance/overlap_suite.h"
#include "tests/conformance/rpc_harness.h"
#include "tests/support/shared_memory_space.h"

namespace dtf::exchange {

namespace {

// The transport under test: one in each run of this program (meson.build), because UCX in one
// process has one context at a time.
std::string transport() {
  const char* const named = std::getenv("DTF_TEST_UCX_TLS");
  return named != nullptr ? named : "tcp";
}

// The reason why nothing can be tested; empty: it can.
std::string absence() {
  ::setenv("UCX_TLS", transport().c_str(), 1);
  try {
    net::RemoteDomain::open();
  } catch (const Error& error) {
    return error.message();
  }
  return testing::lackOfSharedMemory(transport());
}

// The suites have no instances then: a skip in an environment is not in googletest's counts.
TEST(RemoteMemory, CanBeTested) {
  if (const std::string reason = absence(); !reason.empty())
    GTEST_SKIP() << "no suite has run: " << reason;
}

std::unique_ptr<ClusterHarness> makeRemoteHarness(uint32_t ps_tasks, uint32_t workers) {
  EXPECT_TRUE(net::RemoteDomain::open()->text().ends_with("UCX_TLS=" + transport()))
      << net::RemoteDomain::open()->text();
  const auto durability =
      ps_tasks > 1 ? cluster::Durability::kReplica : cluster::Durability::kCheckpoint;
  return std::make_unique<RpcHarness>(ps_tasks, workers, shortTimeouts(), durability,
                                      RpcHarness::PsVia{}, wire::kChunkBytesMax,
                                      cluster::Transport::kRdma);
}

std::vector<HarnessFactory> harnesses() {
  if (!absence().empty()) return {};
  return {&makeRemoteHarness};
}

const auto kRemote = ::testing::ValuesIn(harnesses());

class RemoteArenas : public ExchangeClientSuite {};

// The values of a job over remote memory are those over messages, to the bit, for shards that are
// larger than any packet.
TEST_P(RemoteArenas, TrainingHasTheBitsOfMessages) {
  constexpr uint32_t kPs = 2;
  constexpr size_t kElements = 200'000;
  const auto train = [&](ClusterHarness& harness) {
    arena::ModelDeclaration model = vectorModel(kPs, kElements, 0.01);
    model.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kAdam);
    model.steps = 5;
    const auto client = harness.connect(0);
    client->declare(model);
    const std::vector<float> values(kElements, 1.0F);
    client->job().initialise(std::vector<std::span<const float>>(kPs, values),
                             replication::kFirstEpoch);
    replication::StepState state = client->pull();
    while (!state.done) {
      for (uint32_t ps = 0; ps < kPs; ++ps)
        for (size_t i = 0; i < kElements; ++i)
          client->gradients(ps)[i] = static_cast<float>((i * 7 + state.next_step) % 1000) * 1e-3F;
      state = pushPull(*client, state.next_step, state.next_batch, 0);
    }
    std::vector<float> all;
    for (uint32_t ps = 0; ps < kPs; ++ps) {
      const float* const view = client->view(Values::kParameters, ps);
      all.insert(all.end(), view, view + kElements);
    }
    return all;
  };
  RpcHarness messages(kPs, 1);
  const auto remote = GetParam()(kPs, 1);
  EXPECT_EQ(train(messages), train(*remote));
}

// Its models have tables, or several batches a step, which remote memory refuses.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExchangeClientSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AsyncHammerSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BoundedSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OverlapSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RemoteArenas);
INSTANTIATE_TEST_SUITE_P(Ucx, AsyncHammerSuite, kRemote);
INSTANTIATE_TEST_SUITE_P(Ucx, BoundedSuite, kRemote);
INSTANTIATE_TEST_SUITE_P(Ucx, OverlapSuite, kRemote);
INSTANTIATE_TEST_SUITE_P(Ucx, RemoteArenas, kRemote);

}  // namespace

}  // namespace dtf::exchange
