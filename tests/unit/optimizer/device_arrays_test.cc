// A shard with arrays on a device: a fake one, which subtracts, and fails when a test sets it to.
// tests/conformance/device_suite_updates.cc has real devices.

#include "common/optimizer/device_arrays.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <thread>
#include <variant>

#include "common/base/error.h"
#include "common/base/thread.h"
#include "common/exchange/local_exchange_client.h"
#include "common/replication/epoch.h"

namespace dtf::optimizer {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr uint64_t kElements = 16;

class FakeDevice final : public DeviceArrays {
 public:
  void write(std::span<const float> parameters,
             std::span<const std::span<const float>> slots) override {
    parameters_.assign(parameters.begin(), parameters.end());
    slots_.clear();
    for (const std::span<const float> slot : slots) slots_.emplace_back(slot.begin(), slot.end());
  }
  void update(const UpdateConstants& constants) override {
    if (update_fails) fail();
    for (float& x : parameters_) x -= constants.learning_rate;
    for (auto& slot : slots_)
      for (float& x : slot) x += 1;
  }
  void readParameters(float* to) override {
    ++reads;
    if (read_fails) fail();
    std::ranges::copy(parameters_, to);
  }
  void readSlot(uint32_t slot, float* to) override {
    if (slot_read_fails) fail();
    std::ranges::copy(slots_.at(slot), to);
  }

  bool update_fails = false, read_fails = false, slot_read_fails = false;
  int reads = 0;

 private:
  static void fail() { throw Error(ErrorCode::kUnavailable, "the device fell off the bus"); }
  std::vector<float> parameters_;
  std::vector<std::vector<float>> slots_;
};

class DeviceArraysTest : public ::testing::Test {
 protected:
  DeviceArraysTest() {
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout({{"v", Shape{16}, {{0, 0, kElements}}}}, 1);
    model.steps = 10;
    model.optimizer.kind = cluster::OptimizerSpec::Kind::kMomentum;
    model.optimizer.learning_rate = 1;
    model.optimizer.moving_average_decay = 0.5;
    client_.declare(model, device_);
    const std::vector<float> values(kElements, 7);
    const std::vector<std::span<const float>> shards = {values};
    client_.initialise(shards, replication::kFirstEpoch);
    state_ = client_.pull();
  }
  std::span<const float> parameters() {
    return {client_.view(exchange::Values::kParameters, 0), kElements};
  }
  void step() { state_ = pushPull(client_, state_.next_step, state_.next_batch, 0); }
  // Captures the current values; on failure returns null and sets `error`.
  std::shared_ptr<const replication::Capture> cut(std::string* error = nullptr) {
    std::optional<replication::CutAnswer> answered;
    std::shared_ptr<const replication::Capture> capture;
    cluster_.ask(0, [&](shard::Shard& shard) {
      const CutPosition position = shard.cuts().position(client_.incarnation(), false);
      shard.cuts().cutAt(client_.incarnation(), shard.status().epoch, position,
                         [&](replication::CutAnswer answer) { answered = std::move(answer); });
      if (answered && std::holds_alternative<replication::CutResult>(*answered))
        capture = shard.cuts().captured(client_.incarnation(), position).capture;
    });
    EXPECT_TRUE(answered.has_value());
    if (answered && error != nullptr && std::holds_alternative<Error>(*answered))
      *error = std::get<Error>(*answered).message();
    return capture;
  }

  const std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  SystemClock clock_;
  exchange::LocalCluster cluster_{1, 1, clock_};
  exchange::LocalExchangeClient client_{cluster_, 0};
  replication::StepState state_;
};

TEST_F(DeviceArraysTest, AreReadWhenSomebodyAsks) {
  EXPECT_THAT(parameters(), Each(7));
  EXPECT_EQ(device_->reads, 0) << "the initial values are here";
  step();
  step();
  EXPECT_EQ(device_->reads, 0);
  EXPECT_THAT(parameters(), Each(5));
  EXPECT_THAT(parameters(), Each(5));
  EXPECT_EQ(device_->reads, 1);
  EXPECT_EQ(state_.global_step, 2u);
}

TEST_F(DeviceArraysTest, ACutHasThemAsTheyWere) {
  step();
  const auto capture = cut();
  ASSERT_NE(capture, nullptr);
  step();
  EXPECT_EQ(capture->version, 1u);
  EXPECT_EQ(capture->parameters->data()[15], 6);
  ASSERT_EQ(capture->slots.size(), 2u);
  EXPECT_EQ(capture->slots[0].as<float>()[15], 1) << "from 0";
  EXPECT_EQ(capture->slots[1].as<float>()[15], 8) << "an average begins as the parameters do";
  EXPECT_THAT(parameters(), Each(5));
}

TEST_F(DeviceArraysTest, AveragesAreReadFromThere) {
  step();
  client_.pull(exchange::Values::kAverages);
  EXPECT_THAT(std::span(client_.view(exchange::Values::kAverages, 0), kElements), Each(8));
}

TEST_F(DeviceArraysTest, AReadThatFailsIsTriedAgain) {
  step();
  for (bool* const fails : {&device_->read_fails, &device_->slot_read_fails}) {
    *fails = true;
    std::string error;
    EXPECT_EQ(cut(&error), nullptr);
    EXPECT_THAT(error, HasSubstr("fell off the bus"));
    *fails = false;
    ASSERT_NE(cut(), nullptr) << "the cut that failed is not in the way";
  }
  step();
  device_->read_fails = true;
  EXPECT_THROW(parameters(), Error);
  device_->read_fails = false;
  EXPECT_THAT(parameters(), Each(5));
}

TEST_F(DeviceArraysTest, AnUpdateThatFailedLeavesNothingToRead) {
  step();
  device_->update_fails = true;
  EXPECT_THROW(step(), Error);
  device_->update_fails = false;
  std::string error;
  EXPECT_EQ(cut(&error), nullptr);
  EXPECT_THAT(error, HasSubstr("they are lost, go on from a checkpoint"));
  EXPECT_THROW(parameters(), Error);
  EXPECT_THROW(client_.pull(exchange::Values::kAverages), Error);
}

// Async: a push waits for a checkpoint's cut, and the cut's thread applies it then. The cut
// succeeds; the push gets the error.
TEST_F(DeviceArraysTest, APushThatWaitedForACutFailsWithTheDevice) {
  step();
  const Incarnation self = client_.incarnation();
  CutPosition position;
  cluster_.ask(0, [&](shard::Shard& shard) { position = shard.cuts().position(self, true); });
  const uint64_t before = cluster_.status(0).gradient_bytes;
  std::string pushed;
  Thread trainer("trainer", [&] {
    try {
      step();
    } catch (const Error& error) {
      pushed = error.message();
    }
  });
  while (cluster_.status(0).gradient_bytes == before) std::this_thread::yield();
  device_->update_fails = true;
  std::optional<replication::CutAnswer> answered;
  cluster_.ask(0, [&](shard::Shard& shard) {
    shard.cuts().cutAt(self, shard.status().epoch, position,
                       [&](replication::CutAnswer answer) { answered = std::move(answer); });
    shard.cuts().releaseHold(self);
    ASSERT_TRUE(answered && std::holds_alternative<replication::CutResult>(*answered));
    EXPECT_EQ(shard.cuts().captured(self, position).capture->parameters->data()[0], 6);
  });
  trainer.join();
  EXPECT_EQ(pushed, "the device fell off the bus");
}

TEST(ParameterStoreOnADevice, IsWholeAgainOnceItIsRestored) {
  const auto device = std::make_shared<FakeDevice>();
  ParameterStore store({}, kElements, {}, {}, {}, device);
  const std::vector<float> values(kElements, 3);
  store.initialise(values);
  device->update_fails = true;
  EXPECT_THROW(store.apply({{values, nullptr}}), Error);
  device->update_fails = false;
  EXPECT_THROW(store.apply({{values, nullptr}}), Error) << "there is nothing to update";
  EXPECT_THROW(store.readable(), Error);
  store.restore(values, {}, {}, 5);
  EXPECT_EQ(store.version(), 5u);
  EXPECT_EQ(store.readable()->data()[0], 3);
}

}  // namespace
}  // namespace dtf::optimizer
