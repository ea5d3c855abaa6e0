#include "common/wire/checkpoint_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/optimizer/optimizer.h"
#include "common/wire/ps/ps_link.h"

namespace dtf::wire {
namespace {

arena::ModelDeclaration manyVariables(uint32_t count) {
  std::vector<arena::VariableParts> variables;
  for (uint32_t i = 0; i < count; ++i)
    variables.push_back({"layer_" + std::to_string(i) + "/weights", Shape{16}, {{0, 0, 16}}});
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout(variables, 1);
  model.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kAdam);
  return model;
}

// The result of saveShard() for `model`.
checkpoint::SavedShard savedShard(const arena::ModelDeclaration& model) {
  checkpoint::SavedShard saved;
  saved.file.file = "shard-00000-of-00001.safetensors";
  for (const arena::Slice& slice : model.layout.shards[0].slices) {
    const std::string& name = model.layout.variables[slice.variable].name;
    saved.file.parts.push_back({name, 0, 16, 0, 0});
    for (uint32_t slot = 0; slot < optimizer::slotCount(model.optimizer); ++slot)
      saved.file.parts.push_back(
          {name + "/" + optimizer::slotName(model.optimizer, slot), 0, 16, 0, 0});
  }
  return saved;
}

TEST(CheckpointCodec, WhatAnAnswerTakesIsBoundedBeforehand) {
  const arena::ModelDeclaration model = manyVariables(1000);
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::PsCheckpoint::Saved>();
  encodeSaved(savedShard(model), root);
  const uint64_t bytes = root.totalSize().wordCount * sizeof(capnp::word);
  EXPECT_LE(bytes, savedBytesMax(model, 0));
  EXPECT_LT(savedBytesMax(model, 0), bytes * 2) << "a bound that refuses little in vain";
}

TEST(CheckpointCodec, TheMostVariablesThatAPsTakesCanBeSaved) {
  EXPECT_LT(savedBytesMax(manyVariables(100'000), 0), kAnswerLimits.bytes_max);
  EXPECT_GT(savedBytesMax(manyVariables(100'000), 0), kControlLimits.bytes_max)
      << "which is why a worker takes larger answers";
}

TEST(CheckpointCodec, APsThatClaimsPartsWithoutNamingThemIsRefused) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::PsCheckpoint::Saved>();
  capnp::toAny(root).getPointerSection()[1].initAs<capnp::List<capnp::Void>>(20'000'000);
  EXPECT_THROW(decodeSaved(root.asReader()), Error);
}

TEST(CheckpointCodec, WhatAPsHoldsArrivesWithItsSnapshots) {
  using checkpoint::EpochOrigin;
  for (const EpochOrigin origin :
       {EpochOrigin::kInitialValues, EpochOrigin::kSnapshot, EpochOrigin::kCheckpoint}) {
    capnp::MallocMessageBuilder message;
    auto held = message.initRoot<schema::Held>();
    const checkpoint::PsState state{{7, 52, origin, {6, 40}}, false, 7, {{7, 40}, {7, 60}}};
    encodeHeld(state, held);
    const checkpoint::PsState there = decodeHeld(held.asReader());
    EXPECT_EQ(there.epoch, 7u);
    EXPECT_EQ(there.step, 52u);
    EXPECT_EQ(there.origin, origin);
    EXPECT_EQ(there.origin_cut, state.origin_cut);
    EXPECT_FALSE(there.absent);
    EXPECT_EQ(there.replica_epoch, 7u);
    EXPECT_EQ(there.snapshots, state.snapshots);
  }
}

// The chief compares each ps's snapshots with every other ps's.
TEST(CheckpointCodec, APsThatOffersMoreSnapshotsThanItCanHaveIsRefused) {
  capnp::MallocMessageBuilder message;
  auto held = message.initRoot<schema::Held>();
  held.initSnapshots(64);
  EXPECT_NO_THROW(decodeHeld(held.asReader()));
  held.initSnapshots(65);
  EXPECT_THROW(decodeHeld(held.asReader()), Error);
}

}  // namespace
TEST(CheckpointCodec, ASavedShardArrivesAsItWas) {
  checkpoint::SavedShard saved;
  saved.file = {"shard-0-of-2.safetensors", 4711, 0x1234567890abcdef, {}};
  saved.file.parts.push_back({"w", 1, 2, 3, 4});
  saved.file.parts.push_back({"w/Adam", 5, 6, 7, 8});
  saved.clock = {9, 0.25, 0.125};
  saved.stall_seconds = 0.5;
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::PsCheckpoint::Saved>();
  encodeSaved(saved, root);
  const checkpoint::SavedShard again = decodeSaved(root.asReader());
  EXPECT_EQ(again.file, saved.file);
  EXPECT_EQ(again.clock.applies, 9u);
  EXPECT_EQ(again.clock.beta1_power, 0.25);
  EXPECT_EQ(again.clock.beta2_power, 0.125);
  EXPECT_EQ(again.stall_seconds, 0.5);
}

TEST(CheckpointCodec, ACutsHeadArrivesAndHasNoMorePartsThanAJobTasks) {
  capnp::MallocMessageBuilder message;
  auto builder = message.initRoot<schema::PsCheckpoint::ExpectParams>();
  const checkpoint::CutHead head{7, {3, 4}, {{7, 0.5, 0.25}}};
  encodeCutHead(head, builder);
  const checkpoint::CutHead read = decodeCutHead(builder.asReader());
  EXPECT_EQ(read.global_step, head.global_step);
  EXPECT_EQ(read.worker_batches, head.worker_batches);
  EXPECT_EQ(read.clocks, head.clocks);
  builder.initWorkerBatches(5000);
  EXPECT_THROW(decodeCutHead(builder.asReader()), Error);
  builder.initWorkerBatches(0);
  builder.initClocks(5000);
  EXPECT_THROW(decodeCutHead(builder.asReader()), Error);
}

TEST(CheckpointCodec, APositionArrivesAsItWas) {
  for (const CutPosition& position :
       {CutPosition{}, CutPosition{7}, CutPosition{1, 0, ~uint64_t{0}}}) {
    capnp::MallocMessageBuilder message;
    auto list = message.initRoot<schema::PsCheckpoint::CutParams>().initPosition(
        static_cast<uint32_t>(position.size()));
    encodePosition(position, list);
    EXPECT_EQ(decodePosition(list.asReader()), position);
  }
}

}  // namespace dtf::wire
