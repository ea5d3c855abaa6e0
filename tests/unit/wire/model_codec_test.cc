#include "common/wire/model_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/base/error.h"

namespace dtf::wire {

namespace {

arena::ModelDeclaration softmaxModel() {
  arena::ModelDeclaration model;
  model.layout =
      arena::makeLayout({{"softmax/weights", Shape{784, 10}, {{0, 0, 4000}, {1, 4000, 3840}}},
                         {"softmax/biases", Shape{10}, {{1, 0, 10}}},
                         {"norm/moving_mean", Shape{10}, {{0, 0, 10}}, 0.99},
                         {"words/embeddings", Shape{9, 4}, {{1, 0, 36}}, std::nullopt, true}},
                        2);
  model.optimizer.kind = cluster::OptimizerSpec::Kind::kAdam;
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 3};
  model.steps = 1000;
  model.epochs = {.examples = 150, .batch_size = 100};
  model.settings = {{"data.seed", "7"}, {"model.loss", "mse"}};
  return model;
}

// Encodes `softmaxModel()`, lets `spoil` change it, decodes.
template <class Spoil>
arena::ModelDeclaration roundTrip(Spoil spoil) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::Model>();
  encodeModel(softmaxModel(), root);
  spoil(root);
  return decodeModel(root.asReader());
}

}  // namespace

TEST(ModelCodec, RoundTripKeepsEverything) {
  EXPECT_EQ(roundTrip([](auto&) {}), softmaxModel());
  arena::ModelDeclaration overlapped = softmaxModel();
  overlapped.replication.overlap = true;
  overlapped.replication.transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
  EXPECT_EQ(roundTrip([&](auto& m) { encodeModel(overlapped, m); }), overlapped);
  arena::ModelDeclaration summed = softmaxModel();
  summed.replication.replicas_to_aggregate = 3;
  summed.replication.host_leaders = {0, 0, 2};
  EXPECT_EQ(roundTrip([&](auto& m) { encodeModel(summed, m); }), summed);
  arena::ModelDeclaration bounded = softmaxModel();
  bounded.replication.mode = cluster::ReplicationSpec::Mode::kBounded;
  bounded.replication.staleness = 17;
  EXPECT_EQ(roundTrip([&](auto& m) { encodeModel(bounded, m); }), bounded);
}

TEST(ModelCodec, RefusesWhatAPeerCouldLieAbout) {
  EXPECT_THROW(roundTrip([](auto& m) { m.getShards()[0].setElements(7); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getShards()[0].setElements(uint64_t{1} << 60); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getShards()[0].getSlices()[0].setVariable(9); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getShards()[0].getSlices()[0].setBegin(~0ull); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getShards()[0].getSlices()[0].setCount(8000); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getShards()[0].getSlices()[0].setOffset(3); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getShards()[0].getSlices()[0].setOffset(1 << 20); }),
               Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getShards()[1].getSlices()[1].setOffset(0); }), Error)
      << "slices overlap";
  EXPECT_THROW(roundTrip([](auto& m) { m.getVariables()[0].getShape().set(0, -4); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getVariables()[0].setName(""); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getVariables()[2].setMomentum(1); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getVariables()[1].setSparse(true); }), Error)
      << "it lies ahead of a dense one";
  EXPECT_THROW(roundTrip([](auto& m) { m.getVariables()[3].getShape().set(0, 0); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getVariables()[3].setMoves(true); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getOptimizer().setKind(0); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.initSettings(kSettingsMax + 1); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) {
                 m.getSettings()[0].setValue(std::string(kSettingBytesMax + 1, 'x'));
               }),
               Error);
  EXPECT_THROW(
      roundTrip([](auto& m) {
        m.getOptimizer().getSettings()[0].setValue(std::numeric_limits<double>::quiet_NaN());
      }),
      Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getReplication().setMode(0); }), Error);
  EXPECT_THROW(roundTrip([](auto& m) { m.getReplication().setMode(4); }), Error);
}

TEST(ModelCodec, RefusesElementsThatNoSliceCovers) {
  EXPECT_THROW(roundTrip([](auto& m) { m.getShards()[0].setElements(uint64_t{1} << 30); }), Error);
}

TEST(ModelCodec, AListOfNothingIsNotTakenForSlices) {
  const auto slicesOfNothing = [](uint32_t claimed) {
    return [claimed](schema::Model::Builder& m) {
      capnp::toAny(schema::Shard::Builder(m.getShards()[0]))
          .getPointerSection()[0]
          .initAs<capnp::List<capnp::Void>>(claimed);
    };
  };
  try {
    roundTrip(slicesOfNothing(20'000'000));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.message()).find("more than 524288 slices"), std::string::npos)
        << error.message();
  }
}

TEST(StepStateCodec, RoundTripKeepsEverything) {
  for (const replication::Outcome outcome :
       {replication::Outcome::kApplied, replication::Outcome::kQueued, replication::Outcome::kStale,
        replication::Outcome::kWentBack}) {
    const replication::StepState state{outcome, 7, 8, 1, true, 3, 0.25f, uint64_t{2} << 40 | 77, 9};
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<schema::StepState>();
    encodeStepState(state, root);
    EXPECT_EQ(decodeStepState(root.asReader()), state);
  }
}

TEST(StepStateCodec, KeepsWhoIsSlowAndHowLongTheCallWaited) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::StepState>();
  replication::StepState state;
  state.waited = std::chrono::microseconds(1234);
  state.straggler = {0, replication::Phase::kData, std::chrono::microseconds(4100)};
  encodeStepState(state, root);
  EXPECT_EQ(decodeStepState(root.asReader()), state);
  root.setSlowPhase(200);
  EXPECT_FALSE(decodeStepState(root.asReader()).straggler) << "a phase of a later version";
  state.waited = std::chrono::hours(24);
  encodeStepState(state, root);
  EXPECT_EQ(decodeStepState(root.asReader()).waited, std::chrono::microseconds(UINT32_MAX))
      << "the largest number stands for more";
}

TEST(PhaseTimesCodec, RoundTripKeepsEverything) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::PhaseTimes>();
  replication::PhaseTimes times;
  for (size_t i = 0; i < times.each.size(); ++i)
    times.each[i] = std::chrono::microseconds(1000 + i);
  encodePhaseTimes(times, root);
  EXPECT_EQ(decodePhaseTimes(root.asReader()), times);
}

TEST(StepStateCodec, AZeroedAnswerIsRefused) {
  capnp::MallocMessageBuilder message;
  EXPECT_THROW(decodeStepState(message.initRoot<schema::StepState>().asReader()), Error);
}

TEST(TaskCodec, RoundTrip) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::Task>();
  encodeTask({JobKind::kPs, 3}, root);
  EXPECT_EQ(decodeTask(root.asReader()), (TaskId{JobKind::kPs, 3}));
}

}  // namespace dtf::wire
