// The blocking client on the control loop; checkpoint_calls_test.cc tests its calls.

#include "common/wire/checkpoint/rpc_checkpoint_client.h"
#include "common/replication/epoch.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/unit/wire/fake_ps_host.h"

namespace dtf::wire {
namespace {

using fake::FakePs;
using fake::FakePsHost;
using Calls = std::vector<std::string>;

constexpr double kPatienceSeconds = 30;

class RpcCheckpointClientTest : public ::testing::Test {
 protected:
  RpcCheckpointClientTest() { parameters_.declare(FakePsHost::model()); }

  Calls newCalls() {
    return host_.with([](FakePs& ps) { return std::exchange(ps.calls, {}); });
  }

  FakePsHost host_;
  RpcExchangeClient parameters_{host_.clientOptions()};
};

TEST_F(RpcCheckpointClientTest, ACheckpointIsTakenAndRead) {
  host_.with([](FakePs& ps) {
    ps.holds_values = true;
    ps.step = 7;
  });
  RpcCheckpointClient client(parameters_, kPatienceSeconds);
  const checkpoint::PsState held = client.held().at(0);
  EXPECT_EQ(held.epoch, replication::kFirstEpoch);
  EXPECT_EQ(held.step, 7u);
  newCalls();
  EXPECT_EQ(client.positions(true), (std::vector<CutPosition>{{7}}));
  client.releaseHold();
  client.startCut({8}, replication::kFirstEpoch);
  EXPECT_EQ(client.awaitCut(), 7u);
  EXPECT_EQ(client.save("step-7.tmp", {8}).at(0).file.file, "step-7.tmp");
  client.restore(
      {"step-7", replication::kFirstEpoch, 7, replication::nextEpoch(replication::kFirstEpoch, 1)});
  EXPECT_EQ(newCalls(), (Calls{"position", "releaseHold", "cut", "position", "save", "restore",
                               "commitRestore"}));
}

TEST_F(RpcCheckpointClientTest, WhoIsNotTheChiefIsRefused) {
  host_.with([](FakePs& ps) { ps.refusal = Error(ErrorCode::kPermission, "for the chief alone"); });
  try {
    RpcCheckpointClient client(parameters_, kPatienceSeconds);
    client.held();
    FAIL() << "it supervises";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPermission);
  }
}

TEST_F(RpcCheckpointClientTest, AnotherThreadCallsOffTheCutThatIsAwaited) {
  host_.with([](FakePs& ps) { ps.hangs = "cut"; });
  RpcCheckpointClient client(parameters_, kPatienceSeconds);
  client.held();
  client.startCut({8}, replication::kFirstEpoch);
  std::future<void> ended =
      std::async(std::launch::async, [&] { EXPECT_THROW(client.awaitCut(), Error); });
  client.callOffCuts();
  ended.get();
}

}  // namespace
}  // namespace dtf::wire
