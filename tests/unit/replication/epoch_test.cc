#include "common/replication/epoch.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <fstream>

#include "tests/support/sanitizer.h"
#include "tests/unit/shard/shard_driver.h"

namespace dtf::replication {
namespace {

using namespace shard;

constexpr Incarnation kChiefsLife{1};
constexpr uint64_t kNextEpoch = nextEpoch(kFirstEpoch, 5);
constexpr uint64_t kLastNumber = (1 << 24) - 1;

TEST(Epoch, EveryValidOneHasANext) {
  EXPECT_FALSE(validEpoch(0));
  EXPECT_FALSE(validEpoch(12345)) << "without a number";
  EXPECT_TRUE(validEpoch(kFirstEpoch));
  const uint64_t last = nextEpoch((kLastNumber - 2) << kEpochChiefBits, ~uint64_t{0});
  EXPECT_TRUE(validEpoch(last));
  EXPECT_GT(nextEpoch(last, 0), last);
  EXPECT_FALSE(validEpoch(nextEpoch(last, 0)));
  EXPECT_FALSE(validEpoch(~uint64_t{0}));
}

class InvalidEpoch : public ::testing::TestWithParam<uint64_t> {};

TEST_P(InvalidEpoch, IsRefusedWhoeverSendsIt) {
  ShardDriver driver(2, 1, 10, 0, 2, false, true, cluster::OptimizerSpec::Kind::kGradientDescent,
                     std::chrono::seconds(60));
  const uint64_t bad = GetParam();
  EXPECT_NE(driver.push(0, 0, 1, 0, 1, bad)->error().find("the invalid epoch"), std::string::npos);
  std::string pulled;
  driver.shard.pull(
      1, kChiefsLife, {},
      [&](const PushAnswer& answer) { pulled = std::get<Error>(answer).message(); }, bad);
  EXPECT_NE(pulled.find("for worker/1"), std::string::npos);
  const std::vector<float> values(driver.elements);
  EXPECT_THROW(driver.shard.initialise(0, kChiefsLife, values, bad), Error);
  shard::RestoredShard state;
  state.epoch = bad;
  EXPECT_THROW(driver.shard.recovery().restore(kChiefsLife, state), Error);
  EXPECT_THROW(driver.shard.peers().onReceived(1, {bad, 0}, 0), Error);
  EXPECT_EQ(driver.shard.held().epoch, kFirstEpoch);
}

INSTANTIATE_TEST_SUITE_P(Numbers, InvalidEpoch,
                         ::testing::Values(uint64_t{7}, kLastNumber << kEpochChiefBits,
                                           ~uint64_t{0}));

// ---- initial values of a later epoch: one ps was lost while they were brought

TEST(InitialValuesAgain, TakeAPsBackThatHasThemAlready) {
  ShardDriver driver(2, 2, 10);
  const auto held = driver.push(0, 0, 4);
  const std::vector<float> same(driver.elements, 0.5F);
  EXPECT_FALSE(driver.shard.initialise(0, kChiefsLife, same)) << "of the same epoch: it has them";
  EXPECT_TRUE(held->waits());
  EXPECT_TRUE(driver.shard.initialise(0, kChiefsLife, same, kNextEpoch));
  ASSERT_FALSE(held->waits());
  EXPECT_EQ(held->state().outcome, Outcome::kWentBack);
  EXPECT_EQ(held->value(), 0.5F);
  EXPECT_EQ(driver.shard.held().epoch, kNextEpoch);
  EXPECT_EQ(driver.shard.held().origin, checkpoint::EpochOrigin::kInitialValues);
  EXPECT_FALSE(driver.shard.initialise(0, kChiefsLife, same)) << "an earlier one comes too late";
  EXPECT_EQ(driver.push(1, 0, 4)->state().outcome, Outcome::kWentBack);
}

// ps/0, which collects the reports, was lost with the earlier ones.
TEST(InitialValuesAgain, AFollowerReportsTheGradientsOfTheNewEpoch) {
  ShardDriver driver(3, 2, 10, 1, 2);
  const auto waits = driver.push(0, 0);
  EXPECT_EQ(driver.peers.reports, std::vector<std::string>{"0:0"});
  ASSERT_TRUE(
      driver.shard.initialise(0, kChiefsLife, std::vector<float>(driver.elements), kNextEpoch));
  EXPECT_EQ(waits->state().outcome, Outcome::kWentBack);
  driver.push(0, 0, 1, 0, 1, kNextEpoch);
  EXPECT_EQ(driver.peers.reports, (std::vector<std::string>{"0:0", "0:0"}));
}

// ---- a host without memory for the values of a restore

uint64_t addressSpaceBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  return pages * 4096;
}

[[noreturn]] void goBackWithoutMemory() {
  ShardDriver driver(2, 2, 10, 0, 1, false, true, cluster::OptimizerSpec::Kind::kAdam);
  arena::ModelDeclaration large = driver.model;
  constexpr uint64_t kElements = 32 << 20;  // three arenas of 128 MiB
  large.layout = arena::makeLayout({{"v", Shape{int64_t{kElements}}, {{0, 0, kElements}}}}, 1);
  shard::Shard shard({.workers = 2}, driver.clock, driver.runner, nullptr);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    shard.workers().join(rank, Incarnation{1});
    shard.workers().declare(rank, Incarnation{1}, large);
  }
  const std::vector<float> values(kElements);
  const auto gradient = std::make_shared<std::vector<float>>(kElements);
  shard.initialise(0, kChiefsLife, values);
  std::string pushed = "waits";
  shard.push({.rank = 1, .incarnation = Incarnation{1}, .gradient = *gradient, .owner = gradient},
             [&](const PushAnswer& answer) { pushed = std::get<Error>(answer).message(); });
  const rlimit limit{addressSpaceBytes() - (256 << 20), RLIM_INFINITY};
  DTF_CHECK(::setrlimit(RLIMIT_AS, &limit) == 0);
  std::string said = "it was done";
  try {
    shard.initialise(0, kChiefsLife, values, kNextEpoch);
  } catch (const Error& error) {
    said = error.message();
  }
  const bool as_told = said.find("has no memory for its part of the model") != std::string::npos &&
                       pushed == said && shard.held().epoch == 0 &&
                       !shard.declaration().has_value();
  bool declared_anew = true;
  try {
    shard.workers().checkDeclared(1, Incarnation{1});
  } catch (const Error&) {
    declared_anew = false;
  }
  std::fprintf(stderr, "said '%s', pushed '%s'\n", said.c_str(), pushed.c_str());
  std::_Exit(as_told && !declared_anew ? 0 : 1);
}

TEST(GoingBackDeathTest, AHostWithoutMemoryTellsWhoeverWaitsAndHoldsNothing) {
#ifdef DTF_SANITIZER_MALLOC
  GTEST_SKIP() << "a sanitizer reserves address space as it likes";
#endif
  EXPECT_EXIT(goBackWithoutMemory(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dtf::replication
