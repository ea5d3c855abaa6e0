#include "common/replication/updater.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/shard/shard_driver.h"

namespace dtf::replication {
namespace {

using namespace shard;

constexpr size_t kInline = 16;
constexpr size_t kLarge = optimizer::kInPlaceBytesMax / sizeof(float) + 16;

class UpdaterTest : public ::testing::Test {
 protected:
  struct World {
    explicit World(size_t elements, optimizer::UpdateRunner& runner)
        : store(optimizer(), elements),
          gradient(std::make_shared<std::vector<float>>(elements, -1)),
          updater(store, runner, calls) {
      store.initialise(std::vector<float>(elements));
    }
    static cluster::OptimizerSpec optimizer() {
      cluster::OptimizerSpec spec;
      spec.learning_rate = 1;
      return spec;
    }
    void start(std::function<void()> committed) {
      updater.start({{*gradient, gradient}}, {}, std::move(committed));
    }
    float value() { return store.current()->data()[0]; }

    OutwardCalls calls;
    optimizer::ParameterStore store;
    std::shared_ptr<std::vector<float>> gradient;
    Updater updater;
  };
  HeldRunner runner_;
};

TEST_F(UpdaterTest, ASmallShardIsUpdatedBeforeStartReturns) {
  World world(kInline, runner_);
  bool committed = false;
  world.start([&] { committed = true; });
  EXPECT_TRUE(committed);
  EXPECT_FALSE(world.updater.busy());
  EXPECT_EQ(world.value(), 1);
  EXPECT_FALSE(runner_.finish()) << "the runner was not asked";
}

TEST_F(UpdaterTest, ALargeShardStaysAsItIsUntilTheRunnerIsDone) {
  World world(kLarge, runner_);
  float seen = 0;
  world.start([&] { seen = world.value(); });
  EXPECT_TRUE(world.updater.busy());
  EXPECT_EQ(world.value(), 0);
  ASSERT_TRUE(runner_.finish());
  EXPECT_FALSE(world.updater.busy());
  EXPECT_EQ(seen, 1) << "committed() is called after the commit";
}

TEST_F(UpdaterTest, WhoWaitsUntilItIsIdleComesBeforeTheNextUpdate) {
  World world(kLarge, runner_);
  std::string order;
  world.updater.callAfter(UpdateEnd::kRunning, [&] { order += "at once, "; });
  world.start([&] {
    order += "committed, ";
    world.start([&] { order += "again"; });
  });
  world.updater.callAfter(UpdateEnd::kRunning,
                          [&] { order += fmt::format("idle at {}, ", world.value()); });
  while (runner_.finish()) {
  }
  EXPECT_EQ(order, "at once, idle at 1, committed, again");
}

// A small shard is updated within start().
TEST_F(UpdaterTest, TheNextUpdateIsAwaitedWhileNoneRuns) {
  for (const uint64_t elements : {uint64_t{16}, kLarge}) {
    World world(elements, runner_);
    std::string order;
    world.updater.callAfter(UpdateEnd::kNext,
                            [&] { order += fmt::format("updated to {}, ", world.value()); });
    EXPECT_EQ(order, "");
    for (int i = 0; i < 2; ++i) {
      world.start([&] { order += "committed, "; });
      runner_.finish();
    }
    EXPECT_EQ(order, "updated to 1, committed, committed, ");
  }
}

TEST_F(UpdaterTest, OutwardCallsLeaveWhenTheUpdateIsCommitted) {
  World world(kLarge, runner_);
  float seen = 0;
  world.start([&] {
    world.calls.add([&] { seen = world.value() + (world.updater.busy() ? 100 : 0); });
    EXPECT_EQ(seen, 0) << "not from within";
  });
  ASSERT_TRUE(runner_.finish());
  EXPECT_EQ(seen, 1);
}

TEST_F(UpdaterTest, AnUpdateThatEndsAfterItsUpdaterIsDropped) {
  bool committed = false;
  {
    World world(kLarge, runner_);
    world.start([&] { committed = true; });
  }
  EXPECT_TRUE(runner_.finish());
  EXPECT_FALSE(committed);
}

}  // namespace
}  // namespace dtf::replication
