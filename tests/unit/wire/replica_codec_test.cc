#include "common/wire/replica_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/replication/epoch.h"

namespace dtf::wire {
namespace {

replication::ReplicaState someState() {
  replication::ReplicaState state;
  state.epoch = replication::nextEpoch(replication::kFirstEpoch, 7);
  state.origin = checkpoint::EpochOrigin::kCheckpoint;
  state.origin_cut = {replication::kFirstEpoch, 40};
  state.step = 52;
  state.clock = {52, 0.25, 0.5};
  state.memory.loss = 1.5f;
  state.memory.workers = {{Incarnation{3}, 26, 0b101, 1.25f},
                          {Incarnation{4}, 26, 0b011, 1.75f, 28}};
  return state;
}

template <class Spoil>
replication::ReplicaState stateThere(Spoil spoil) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::ReplicaState>();
  encodeReplicaState(someState(), root);
  spoil(root);
  return decodeReplicaState(root.asReader());
}

TEST(ReplicaCodec, KeepsAllOfAState) {
  const replication::ReplicaState state = stateThere([](auto&) {});
  EXPECT_EQ(state.epoch, someState().epoch);
  EXPECT_EQ(state.origin, checkpoint::EpochOrigin::kCheckpoint);
  EXPECT_EQ(state.origin_cut, someState().origin_cut);
  EXPECT_EQ(state.step, 52u);
  EXPECT_EQ(state.clock, someState().clock);
  EXPECT_EQ(state.memory, someState().memory);
}

TEST(ReplicaCodec, RefusesAStateThatNoShardIsIn) {
  EXPECT_THROW(stateThere([](auto& root) { root.setEpoch(0); }), Error);
  EXPECT_THROW(stateThere([](auto& root) { root.setEpoch(~uint64_t{0}); }), Error);
  EXPECT_THROW(stateThere([](auto& root) { root.setOrigin(0); }), Error);
  EXPECT_THROW(stateThere([](auto& root) { root.setOrigin(4); }), Error);
}

TEST(ReplicaCodec, KeepsAnUpdate) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::PsReplica::UpdateParams>();
  encodeReplicaUpdate({replication::kFirstEpoch,
                       9,
                       {{}, nullptr, {4, 0}},
                       {{{0, Incarnation{5}, 8}, {3, Incarnation{6}, 7, 5}}, 2}},
                      root);
  ASSERT_EQ(root.getRows().size(), 2u);
  EXPECT_EQ(root.getRows()[0], 4u);
  const replication::ReplicaUpdate update = decodeReplicaUpdate(root.asReader());
  EXPECT_EQ(update.epoch, replication::kFirstEpoch);
  EXPECT_EQ(update.version, 9u);
  EXPECT_EQ(update.note.loss, 2);
  ASSERT_EQ(update.note.pushes.size(), 2u);
  EXPECT_EQ(update.note.pushes[1].rank, 3u);
  EXPECT_EQ(update.note.pushes[1].incarnation, Incarnation{6});
  EXPECT_EQ(update.note.pushes[1].step, 7u);
  EXPECT_EQ(update.note.pushes[1].progress, 5u);
}

}  // namespace
}  // namespace dtf::wire
