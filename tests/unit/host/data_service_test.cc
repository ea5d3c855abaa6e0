// A bulk session rejects wrong calls for shared memory; tests/conformance covers the rest of
// sharing.

#include <optional>
#include <string>

#include "common/net/memory_channel.h"
#include "tests/unit/host/ps_world.h"

namespace dtf::host {
namespace {

constexpr uint64_t kSharedElements = 16;

class SharedMemoryCallsTest : public ::testing::Test {
 protected:
  ~SharedMemoryCallsTest() noexcept override {}

  // Opens a session of worker/0 for a model with `replicas` a step.
  // `codecs`: of the worker's hello to the bulk session; nullopt: those of this version. Returns
  // its refusal.
  std::string begin(uint32_t replicas, bool narrows = false,
                    const std::optional<std::vector<const char*>>& codecs = std::nullopt,
                    const char* transport = "") {
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout({{"v", Shape{kSharedElements}, {{0, 0, kSharedElements}}}}, 1);
    if (replicas > 0) model.replication = {cluster::ReplicationSpec::Mode::kSync, replicas, 1};
    model.steps = 10;
    if (narrows)
      model.replication.transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
    auto control = world_.hello(*control_connection_, 0, kOne);
    auto declare = control.declareRequest();
    wire::encodeModel(model, declare.initModel());
    EXPECT_EQ(world_.refusal(declare.send().ignoreResult()), "");
    auto hello = bulk_connection_->bootstrap().castAs<schema::PsDataGate>().helloRequest();
    wire::encodeHello(wire::linkOptions(world_.jobSpec(), {JobKind::kWorker, 0}, kOne),
                      {JobKind::kPs, 0}, hello.initHello());
    if (codecs) {
      auto named = hello.getHello().initCodecs(static_cast<uint32_t>(codecs->size()));
      for (uint32_t i = 0; i < named.size(); ++i) named.set(i, codecs->at(i));
    }
    hello.getHello().setTransport(transport);
    auto session = hello.send();
    data_ = session.getData();
    return world_.refusal(session.ignoreResult());
  }

  // Connects to the door and gives a gradient arena.
  std::string share() {
    auto door = data_->openDoorRequest().send();
    world_.loop.settle();
    auto opened = door.wait(world_.loop.waitScope());
    channel_.emplace(net::MemoryChannel::connect(opened.getAddress(),
                                                 {opened.getSecret0(), opened.getSecret1()}));
    channel_->give(gradient_);
    auto request = data_->shareMemoryRequest();
    request.initGradientKeys(1).set(0, gradient_.key());
    return world_.refusal(request.send().ignoreResult());
  }

  PsWorld world_{1, 1};
  kj::Own<net::RpcConnection> control_connection_ = world_.client();
  kj::Own<net::RpcConnection> bulk_connection_ = world_.bulkClient();
  std::optional<schema::PsData::Client> data_;
  std::optional<net::MemoryChannel> channel_;
  const SharedMemory gradient_{kSharedElements * sizeof(float)};
};

// The ps keeps such gradients beyond its reply, when the worker writes the next one into the same
// arena.
TEST_F(SharedMemoryCallsTest, GradientsOfSeveralBatchesAStepAreNotReadInPlace) {
  ASSERT_EQ(begin(2), "");
  EXPECT_EQ(
      share(),
      "these gradients can't be in shared memory: the ps keeps gradients of several batches a "
      "step beyond its reply");
}

TEST_F(SharedMemoryCallsTest, AGradientIsInOnePlace) {
  ASSERT_EQ(begin(0), "");
  ASSERT_EQ(share(), "");
  auto both = data_->exchangeRequest();
  both.setGradientKey(gradient_.key());
  both.initGradient(1).init(0, kSharedElements * sizeof(float));
  EXPECT_EQ(world_.refusal(both.send().ignoreResult()),
            "a gradient in the message and another in shared memory");
  auto other = data_->exchangeRequest();
  other.setGradientKey(gradient_.key() + 1);
  EXPECT_NE(world_.refusal(other.send().ignoreResult()).find("which was not shared"),
            std::string::npos);
}

TEST_F(SharedMemoryCallsTest, WhoeverGaveNoGradientHasNone) {
  ASSERT_EQ(begin(0), "");
  auto exchange = data_->exchangeRequest();
  exchange.setGradientKey(gradient_.key());
  EXPECT_NE(world_.refusal(exchange.send().ignoreResult()).find("which was not shared"),
            std::string::npos);
}

TEST_F(SharedMemoryCallsTest, ACardGetsNothingUnlessTheFileAsksForIt) {
  ASSERT_EQ(begin(0), "");
  EXPECT_EQ(world_.refusal(data_->openRemoteRequest().send().ignoreResult()),
            "its cluster file doesn't say 'transport: rdma'");
}

TEST_F(SharedMemoryCallsTest, AWorkerWithAnotherTransportGetsNoSession) {
  const std::string refusal = begin(0, false, std::nullopt, "rdma");
  EXPECT_NE(refusal.find("worker/0: the cluster file of the other task says 'transport: rdma'"),
            std::string::npos)
      << refusal;
}

TEST_F(SharedMemoryCallsTest, AWorkerWithoutTheCodecOfTheJobGetsNoSession) {
  EXPECT_EQ(
      begin(0, true, {{"float32"}}),
      "worker/0: this job's parameters and gradients travel as bfloat16, and the other task's "
      "version doesn't have it: start all tasks of the job from one");
}

// As version 0.1.0.
TEST_F(SharedMemoryCallsTest, AWorkerThatNamesNoCodecIsTried) {
  EXPECT_EQ(begin(0, true, std::vector<const char*>{}), "");
}

TEST_F(SharedMemoryCallsTest, AJobThatTravelsAsBFloat16SharesNone) {
  ASSERT_EQ(begin(0, true), "");
  EXPECT_EQ(world_.refusal(data_->openDoorRequest().send().ignoreResult()),
            "this job's parameters and gradients travel as bfloat16, so that its numbers don't "
            "depend on where its tasks run");
  auto wide = data_->exchangeRequest();
  wide.initGradient(1).init(0, kSharedElements * sizeof(float));
  EXPECT_EQ(world_.refusal(wide.send().ignoreResult()),
            "an arena of 64 bytes came instead of the declared 32");
}

}  // namespace
}  // namespace dtf::host
