#include "common/replication/replicator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/replication/updater.h"
#include "tests/unit/shard/replica_keeper.h"

namespace dtf::replication {
namespace {

using namespace shard;

constexpr uint64_t kStoreElements = 16;

// A store that is updated through its replicator.
class ReplicatorTest : public ::testing::Test {
 protected:
  ReplicatorTest() {
    keeper_.model.layout = arena::makeLayout({{"v", Shape{16}, {{0, 0, kStoreElements}}}}, 1);
    keeper_.model.optimizer = optimizer();
    keeper_.heard = [this](uint64_t ticket) { replicator_.onHeard(ticket); };
    store_.initialise(std::vector<float>(kStoreElements, 1));
  }

  static cluster::OptimizerSpec optimizer() {
    return cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kAdam);
  }

  void begin(bool whole = false) {
    PushMemory memory;
    memory.workers.resize(2);
    replicator_.begin({{kFirstEpoch}, {}, memory}, whole);
  }

  void update(float gradient) {
    gradient_ = std::make_shared<std::vector<float>>(kStoreElements, gradient);
    updater_.start({{*gradient_, gradient_}}, {{{0, Incarnation{1}, store_.version()}}, gradient},
                   [this] { ++committed_; });
  }

  ReplicaKeeper keeper_;
  OutwardCalls calls_;
  optimizer::InlineUpdateRunner runner_;
  uint64_t tickets_ = 0;
  optimizer::ParameterStore store_{optimizer(), kStoreElements};
  Replicator replicator_{store_, keeper_, tickets_};
  Updater updater_{store_, runner_, calls_, &replicator_};
  std::shared_ptr<std::vector<float>> gradient_;
  int committed_ = 0;
};

TEST_F(ReplicatorTest, NoUpdateCountsBeforeTheReplicaIsThereAndHasIt) {
  begin();
  update(1);
  EXPECT_EQ(keeper_.seeds, 0);  // nobody keeps one yet
  EXPECT_EQ(committed_, 0);
  replicator_.onBackup();
  EXPECT_EQ(keeper_.seeds, 1);
  EXPECT_EQ(keeper_.updates, 0);
  keeper_.deliver();
  EXPECT_EQ(keeper_.updates, 1);
  EXPECT_EQ(committed_, 0);
  EXPECT_EQ(store_.version(), 0u);  // nobody sees it
  keeper_.deliver();
  EXPECT_EQ(committed_, 1);
  EXPECT_EQ(store_.version(), 1u);
  EXPECT_EQ(keeper_.replica().version(), 1u);
  EXPECT_EQ(keeper_.replica().epoch(), kFirstEpoch);
}

TEST_F(ReplicatorTest, ALostReplicaIsMadeAnewWithTheUpdateThatWasOnItsWay) {
  begin();
  replicator_.onBackup();
  keeper_.deliverAll();
  update(1);
  keeper_.startAgain();  // before the update has arrived
  replicator_.onBackup();
  EXPECT_EQ(keeper_.seeds, 2);
  EXPECT_EQ(committed_, 0);
  keeper_.deliverAll();
  EXPECT_EQ(committed_, 1);
  EXPECT_EQ(keeper_.replica().version(), 1u);
  EXPECT_EQ(keeper_.updates, 1);  // the seed has it
  update(2);
  keeper_.deliverAll();
  EXPECT_EQ(keeper_.replica().version(), 2u);
}

TEST_F(ReplicatorTest, AnAnswerToWhatWasCalledOffCountsForNothing) {
  begin();
  replicator_.onBackup();
  keeper_.deliverAll();
  update(1);
  const uint64_t called_off = tickets_;
  replicator_.onBackup();
  replicator_.onHeard(called_off);
  EXPECT_EQ(committed_, 0);
  EXPECT_FALSE(replicator_.isWhole());
}

TEST_F(ReplicatorTest, AShardThatCameFromItsReplicaNeedsNoSeed) {
  replicator_.onBackup();
  begin(true);
  EXPECT_EQ(keeper_.seeds, 0);
  EXPECT_TRUE(replicator_.isWhole());
}

TEST_F(ReplicatorTest, NothingIsSeededWhileAnUpdateIsBeingApplied) {
  HeldRunner held;
  const uint64_t elements = optimizer::kInPlaceBytesMax / sizeof(float) + 16;
  optimizer::ParameterStore store(optimizer(), elements);
  store.initialise(std::vector<float>(elements));
  ReplicaKeeper keeper;
  keeper.model.layout =
      arena::makeLayout({{"v", Shape{static_cast<int64_t>(elements)}, {{0, 0, elements}}}}, 1);
  keeper.model.optimizer = optimizer();
  Replicator replicator(store, keeper, tickets_);
  keeper.heard = [&](uint64_t ticket) { replicator.onHeard(ticket); };
  Updater updater(store, held, calls_, &replicator);
  PushMemory memory;
  memory.workers.resize(2);
  replicator.onBackup();
  replicator.begin({{kFirstEpoch}, {}, memory}, false);
  keeper.deliverAll();
  const auto gradient = std::make_shared<std::vector<float>>(elements, 1);
  updater.start({{*gradient, gradient}}, {}, [this] { ++committed_; });
  keeper.startAgain();
  replicator.onBackup();
  EXPECT_EQ(keeper.seeds, 1);  // the slots are half updated
  held.finish();
  EXPECT_EQ(keeper.seeds, 2);
  keeper.deliverAll();
  EXPECT_EQ(committed_, 1);
}

// Keeps the gradient that was sent last.
class SentGradient final : public ReplicaLink {
 public:
  void open(uint64_t) override {}
  void seed(uint64_t, const ReplicaSeed&) override {}
  void update(uint64_t, const ReplicaUpdate& update) override { sent = update.gradient; }
  void fetch(std::function<void(std::variant<ReplicaSeed, Error>)>) override {}
  bool isAway() const override { return false; }

  arena::Gradient sent;
};

// A message may outlast the answer to the worker, which then writes its next gradient.
TEST_F(ReplicatorTest, OnlyALentGradientThatIsSentItselfIsCopied) {
  SentGradient link;
  Replicator replicator(store_, link, tickets_);
  Updater updater(store_, runner_, calls_, &replicator);
  PushMemory memory;
  memory.workers.resize(2);
  replicator.onBackup();
  replicator.begin({{kFirstEpoch}, {}, memory}, true);
  const auto memory_of_worker = std::make_shared<std::vector<float>>(kStoreElements, 3.0F);
  const arena::Gradient own{*memory_of_worker, memory_of_worker};
  arena::Gradient lent = own;
  lent.is_lent = true;
  const auto sentOf = [&](std::vector<arena::Gradient> gradients) {
    updater.start(std::move(gradients), {}, [] {});
    replicator.onHeard(tickets_);
    return link.sent;
  };
  EXPECT_EQ(sentOf({own}).values.data(), own.values.data());
  const arena::Gradient copy = sentOf({lent});
  const arena::Gradient mean = sentOf({lent, lent});
  std::ranges::fill(*memory_of_worker, 9.0F);
  for (const arena::Gradient& each : {copy, mean}) {
    EXPECT_EQ(std::vector<float>(each.values.begin(), each.values.end()),
              std::vector<float>(kStoreElements, 3));
    EXPECT_FALSE(each.is_lent);
  }
}

}  // namespace
}  // namespace dtf::replication
