#include "common/shard/shard_replica.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/shard/replica_keeper.h"

namespace dtf::shard {
namespace {

constexpr uint64_t kKeptElements = 16;

// The replica of a store; the test keeps the store beside it.
class ShardReplicaTest : public ::testing::Test {
 protected:
  ShardReplicaTest() {
    model_.layout = arena::makeLayout({{"v", Shape{16}, {{0, 0, kKeptElements}}}}, 1);
    model_.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kAdam);
    store_ = std::make_unique<optimizer::ParameterStore>(model_.optimizer, kKeptElements);
    store_->initialise(std::vector<float>(kKeptElements, 1));
    replica_.meet(kPrimary);
  }

  replication::ReplicaSeed seedOf() const {
    optimizer::ParameterStore::Image image = store_->newest();
    replication::ReplicaState state{{replication::kFirstEpoch, image.version}, image.clock, {}};
    state.memory.workers.resize(2);
    return {state, image.arenas, image.owner};
  }

  replication::ReplicaUpdate next(float gradient) const {
    const auto values = std::make_shared<std::vector<float>>(kKeptElements, gradient);
    return {replication::kFirstEpoch,
            store_->version() + 1,
            {*values, values},
            {{{1, Incarnation{5}, store_->version()}}, gradient}};
  }

  // Applied here and there.
  void updateBoth(float gradient) {
    const replication::ReplicaUpdate update = next(gradient);
    replica_.update(kPrimary, update, [this] { ++received_; });
    store_->apply({update.gradient});
  }

  replication::ReplicaSeed fetch(Incarnation primary) {
    replication::ReplicaSeed fetched;
    replica_.fetch(primary, [&](const replication::ReplicaSeed& seed) { fetched = seed; });
    return fetched;
  }

  static constexpr Incarnation kPrimary{1};
  static constexpr Incarnation kSuccessor{2};
  arena::ModelDeclaration model_;
  optimizer::InlineUpdateRunner runner_;
  replication::OutwardCalls calls_;
  std::unique_ptr<optimizer::ParameterStore> store_;
  ShardReplica replica_{0, {JobKind::kPs, 0}, 2, runner_, calls_};
  int received_ = 0;
};

TEST_F(ShardReplicaTest, HoldsTheSameBitsAndGivesThemBack) {
  replica_.seed(kPrimary, model_, seedOf());
  for (const float gradient : {0.5f, -3.0f, 0.125f}) updateBoth(gradient);
  EXPECT_EQ(received_, 3);
  replica_.meet(kSuccessor);
  const replication::ReplicaSeed back = fetch(kSuccessor);
  const replication::ReplicaSeed here = seedOf();
  EXPECT_EQ(back.state.epoch, replication::kFirstEpoch);
  EXPECT_EQ(back.state.step, 3u);
  EXPECT_EQ(back.state.clock, here.state.clock);
  EXPECT_EQ(back.state.memory.workers[1].steps, 3u);
  EXPECT_EQ(back.state.memory.workers[1].incarnation, Incarnation{5});
  ASSERT_EQ(here.arenas.size(), 4u);  // Adam's two slots, and the previous parameters
  ASSERT_EQ(back.arenas.size(), here.arenas.size());
  for (size_t i = 0; i < here.arenas.size(); ++i)
    EXPECT_EQ(
        std::memcmp(back.arenas[i].data(), here.arenas[i].data(), kKeptElements * sizeof(float)), 0)
        << "arena " << i;
}

TEST_F(ShardReplicaTest, AnUpdateThatIsSaidAgainIsAppliedOnce) {
  replica_.seed(kPrimary, model_, seedOf());
  const replication::ReplicaUpdate update = next(1);
  for (int i = 0; i < 2; ++i) replica_.update(kPrimary, update, [this] { ++received_; });
  EXPECT_EQ(received_, 2);
  EXPECT_EQ(replica_.version(), 1u);
}

TEST_F(ShardReplicaTest, RefusesWhatDoesNotFollow) {
  EXPECT_THROW(replica_.update(kPrimary, next(1), [] {}), Error);  // nothing is kept
  replica_.seed(kPrimary, model_, seedOf());
  replication::ReplicaUpdate update = next(1);
  update.version = 2;
  EXPECT_THROW(replica_.update(kPrimary, update, [] {}), Error);
  update = next(1);
  update.epoch = replication::nextEpoch(replication::kFirstEpoch, 3);
  EXPECT_THROW(replica_.update(kPrimary, update, [] {}), Error);
  update = next(1);
  update.gradient.values = update.gradient.values.first(8);
  EXPECT_THROW(replica_.update(kPrimary, update, [] {}), Error);
  update = next(1);
  update.note.pushes[0].rank = 2;
  EXPECT_THROW(replica_.update(kPrimary, update, [] {}), Error);
  EXPECT_EQ(replica_.version(), 0u);
}

TEST_F(ShardReplicaTest, AReplicaThatIsSeededAgainKnowsTheParametersBeforeToo) {
  store_->apply({next(1).gradient});
  replica_.seed(kPrimary, model_, seedOf());
  const replication::ReplicaSeed back = fetch(kPrimary);
  ASSERT_EQ(back.arenas.size(), 4u);
  EXPECT_EQ(
      std::memcmp(back.arenas[3].data(), store_->previous()->data(), kKeptElements * sizeof(float)),
      0);
}

TEST_F(ShardReplicaTest, RefusesASeedThatDoesNotFitTheModel) {
  replication::ReplicaSeed seed = seedOf();
  seed.arenas.pop_back();
  EXPECT_THROW(replica_.seed(kPrimary, model_, seed), Error);
  seed = seedOf();
  seed.arenas[1] = seed.arenas[1].first(8);
  EXPECT_THROW(replica_.seed(kPrimary, model_, seed), Error);
  seed = seedOf();
  seed.state.memory.workers.resize(3);
  EXPECT_THROW(replica_.seed(kPrimary, model_, seed), Error);
  EXPECT_EQ(replica_.epoch(), 0u);
}

TEST_F(ShardReplicaTest, AProcessThatWasReplacedChangesNothing) {
  replica_.seed(kPrimary, model_, seedOf());
  replica_.meet(kSuccessor);
  EXPECT_THROW(replica_.update(kPrimary, next(1), [] {}), Error);
  EXPECT_THROW(replica_.seed(kPrimary, model_, seedOf()), Error);
  EXPECT_THROW(fetch(kPrimary), Error);
  EXPECT_THROW(replica_.meet(kPrimary), Error);
  EXPECT_EQ(fetch(kSuccessor).state.step, 0u);
}

TEST_F(ShardReplicaTest, TheCountOfStartsDecidesWhoIsNewer) {
  const Incarnation second = Incarnation::of(2, 1, 9);
  const Incarnation first = Incarnation::of(1, 1, 9);
  replica_.meet(second);
  EXPECT_THROW(replica_.meet(first), Error);
}

TEST_F(ShardReplicaTest, OneUpdateTooManyIsAnsweredWhenThereIsRoom) {
  const uint64_t elements = optimizer::kInPlaceBytesMax / sizeof(float) + 16;
  HeldRunner held;
  ShardReplica replica(0, {JobKind::kPs, 0}, 2, held, calls_);
  replica.meet(kPrimary);
  model_.layout =
      arena::makeLayout({{"v", Shape{static_cast<int64_t>(elements)}, {{0, 0, elements}}}}, 1);
  store_ = std::make_unique<optimizer::ParameterStore>(model_.optimizer, elements);
  store_->initialise(std::vector<float>(elements));
  replica.seed(kPrimary, model_, seedOf());
  const auto values = std::make_shared<std::vector<float>>(elements, 1);
  // One is applied, kQueuedMax wait.
  const uint64_t taken = 1 + ShardReplica::kQueuedMax;
  for (uint64_t i = 1; i <= taken + 1; ++i)
    replica.update(kPrimary, {replication::kFirstEpoch, i, {*values, values}, {}},
                   [this] { ++received_; });
  EXPECT_EQ(received_, static_cast<int>(taken));
  bool fetched = false;
  replica.fetch(kPrimary, [&](const replication::ReplicaSeed& seed) {
    fetched = true;
    EXPECT_EQ(seed.state.step, taken + 1);
  });
  held.finish();
  EXPECT_EQ(received_, static_cast<int>(taken + 1));
  EXPECT_FALSE(fetched);  // not before all of them are applied
  while (held.finish()) continue;
  EXPECT_TRUE(fetched);
}

}  // namespace
}  // namespace dtf::shard
