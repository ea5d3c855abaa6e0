// What a bulk session refuses of memory that is shared; the rest of it is in tests/conformance.

#include <optional>
#include <string>

#include "common/net/memory_channel.h"
#include "tests/unit/daemons/psd/ps_world.h"

namespace dtf::psd {
namespace {

constexpr uint64_t kSharedElements = 16;

class SharedMemoryCallsTest : public ::testing::Test {
 protected:
  ~SharedMemoryCallsTest() noexcept override {}

  // Until there is a session of worker/0, whose model has these `replicas` a step.
  void begin(uint32_t replicas, bool narrows = false) {
    ps::ModelDeclaration model;
    model.layout = ps::makeLayout({{"v", Shape{kSharedElements}, {{0, 0, kSharedElements}}}}, 1);
    if (replicas > 0) model.replication = {cluster::ReplicationSpec::Mode::kSync, replicas, 1};
    model.steps = 10;
    if (narrows)
      model.replication.transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
    auto control = world_.hello(*control_connection_, 0, kOne);
    auto declare = control.declareRequest();
    wire::encodeModel(model, declare.initModel());
    ASSERT_EQ(world_.refusal(declare.send().ignoreResult()), "");
    auto hello = bulk_connection_->bootstrap().castAs<schema::PsDataGate>().helloRequest();
    wire::encodeHello(wire::linkOptions(world_.jobSpec(), {JobKind::kWorker, 0}, kOne),
                      {JobKind::kPs, 0}, hello.initHello());
    auto session = hello.send();
    data_ = session.getData();
    ASSERT_EQ(world_.refusal(session.ignoreResult()), "");
  }

  // Goes through the door and gives a gradient arena.
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

// It keeps them beyond its answer, when the worker writes the next one into the same arena.
TEST_F(SharedMemoryCallsTest, GradientsOfSeveralBatchesAStepAreNotReadInPlace) {
  begin(2);
  EXPECT_EQ(share(),
            "gradients with rows, or of several batches a step, can't be in shared memory");
}

TEST_F(SharedMemoryCallsTest, AGradientIsInOnePlace) {
  begin(0);
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
  begin(0);
  auto exchange = data_->exchangeRequest();
  exchange.setGradientKey(gradient_.key());
  EXPECT_NE(world_.refusal(exchange.send().ignoreResult()).find("which was not shared"),
            std::string::npos);
}

TEST_F(SharedMemoryCallsTest, AJobThatTravelsAsBFloat16SharesNone) {
  begin(0, true);
  EXPECT_EQ(world_.refusal(data_->openDoorRequest().send().ignoreResult()),
            "this job's parameters and gradients travel as bfloat16");
  auto wide = data_->exchangeRequest();
  wide.initGradient(1).init(0, kSharedElements * sizeof(float));
  EXPECT_EQ(world_.refusal(wide.send().ignoreResult()),
            "an arena of 64 bytes came instead of the declared 32");
}

}  // namespace
}  // namespace dtf::psd
