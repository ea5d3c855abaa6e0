// A shard whose arrays are on a device: a fake one, which subtracts and fails when it is told to. Real ones: tests/conformance/device_suite_updates.cc.

#include "common/ps/device_arrays.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <variant>

#include "common/base/error.h"
#include "common/ps/epoch.h"
#include "common/ps/local_parameter_client.h"

namespace dtf::ps {
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
    fail();
    for (float& x : parameters_) x -= constants.learning_rate;
    for (auto& slot : slots_)
      for (float& x : slot) x += 1;
  }
  void readParameters(float* to) override {
    ++reads;
    fail();
    std::ranges::copy(parameters_, to);
  }
  void readSlot(uint32_t slot, float* to) override {
    fail();
    std::ranges::copy(slots_.at(slot), to);
  }

  bool fails = false;
  int reads = 0;

 private:
  void fail() const {
    if (fails) throw Error(ErrorCode::kUnavailable, "the device fell off the bus");
  }
  std::vector<float> parameters_;
  std::vector<std::vector<float>> slots_;
};

class DeviceArraysTest : public ::testing::Test {
 protected:
  DeviceArraysTest() {
    ModelDeclaration model;
    model.layout = makeLayout({{"v", Shape{16}, {{0, 0, kElements}}}}, 1);
    model.steps = 10;
    model.optimizer.kind = cluster::OptimizerSpec::Kind::kMomentum;
    model.optimizer.learning_rate = 1;
    model.optimizer.moving_average_decay = 0.5;
    client_.keepOn(device_);
    client_.declare(model);
    const std::vector<float> values(kElements, 7);
    const std::vector<std::span<const float>> shards = {values};
    client_.initialise(shards, kFirstEpoch);
    state_ = client_.pull();
  }
  std::span<const float> parameters() { return {client_.parameters(0), kElements}; }
  void step() { state_ = client_.exchange(state_.next_step, state_.next_batch, 0); }
  // Of what is there now: null where it failed, with what.
  std::shared_ptr<const Capture> cut(std::string* error = nullptr) {
    std::optional<CutAnswer> answered;
    std::shared_ptr<const Capture> capture;
    cluster_.ask(0, [&](Shard& shard) {
      const CutPosition position = shard.position(client_.incarnation(), false);
      shard.cutAt(client_.incarnation(), shard.status().epoch, position,
                  [&](CutAnswer answer) { answered = std::move(answer); });
      if (answered && std::holds_alternative<CutResult>(*answered))
        capture = shard.captured(client_.incarnation(), position).capture;
    });
    EXPECT_TRUE(answered.has_value());
    if (answered && error != nullptr && std::holds_alternative<Error>(*answered))
      *error = std::get<Error>(*answered).message();
    return capture;
  }

  const std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  SystemClock clock_;
  LocalCluster cluster_{1, 1, clock_};
  LocalParameterClient client_{cluster_, 0};
  StepState state_;
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
  client_.pullAverages();
  EXPECT_THAT(std::span(client_.averages(0), kElements), Each(8));
}

TEST_F(DeviceArraysTest, AReadThatFailsIsTriedAgain) {
  step();
  device_->fails = true;
  EXPECT_THROW(parameters(), Error);
  std::string error;
  EXPECT_EQ(cut(&error), nullptr);
  EXPECT_THAT(error, HasSubstr("fell off the bus"));
  device_->fails = false;
  EXPECT_THAT(parameters(), Each(6));
  ASSERT_NE(cut(), nullptr) << "the cut that failed is not in the way";
  step();
  EXPECT_THAT(parameters(), Each(5));
}

TEST_F(DeviceArraysTest, AnUpdateThatFailedLeavesNothingToRead) {
  step();
  device_->fails = true;
  EXPECT_THROW(step(), Error);
  device_->fails = false;
  std::string error;
  EXPECT_EQ(cut(&error), nullptr);
  EXPECT_THAT(error, HasSubstr("they are lost, go on from a checkpoint"));
  EXPECT_THROW(parameters(), Error);
}

}  // namespace
}  // namespace dtf::ps
