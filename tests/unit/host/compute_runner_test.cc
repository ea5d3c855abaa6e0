#include "common/host/compute_runner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "tests/support/still_loop.h"

namespace dtf::host {
namespace {

using dtf::testing::StillLoop;

// More than one part, so that several threads get work.
constexpr uint64_t kUpdateElements = 300'000;

arena::Gradient gradientOf(float value) {
  auto values = std::make_shared<const std::vector<float>>(kUpdateElements, value);
  return {*values, values};
}

class ComputeRunnerTest : public ::testing::Test {
 protected:
  // Runs the loop until the runner has posted the end of an update.
  void settleUntil(const bool& done) {
    const SystemClock clock;
    const TimePoint deadline = clock.now() + std::chrono::minutes(1);
    while (!done) {
      ASSERT_LT(clock.now(), deadline) << "the update was never done";
      loop_.settle();
      std::this_thread::yield();
    }
  }
  // A step of an optimizer on values of 1, with gradients of 0.5.
  std::vector<float> updated(cluster::OptimizerSpec::Kind kind, optimizer::UpdateRunner& runner) {
    optimizer::ParameterStore store(cluster::defaultOptimizer(kind), kUpdateElements,
                                    {{0, 0, kUpdateElements, 0}});
    store.initialise(std::vector<float>(kUpdateElements, 1));
    const auto job = store.prepareApply({gradientOf(0.5F)});
    bool done = false;
    runner.start(job, [&done] { done = true; });
    settleUntil(done);
    store.commit(job);
    return {store.current()->data(), store.current()->data() + kUpdateElements};
  }

  StillLoop loop_;
  optimizer::InlineUpdateRunner here_;
};

TEST_F(ComputeRunnerTest, AnUpdateInPartsHasTheBitsOfOneInPlace) {
  ComputeRunner runner(loop_);
  using Kind = cluster::OptimizerSpec::Kind;
  for (const Kind kind : {Kind::kAdam, Kind::kLars, Kind::kLamb})  // two are measured first
    EXPECT_EQ(updated(kind, runner), updated(kind, here_)) << static_cast<int>(kind);
}

TEST_F(ComputeRunnerTest, TheEndIsToldOnTheLoop) {
  ComputeRunner runner(loop_);
  optimizer::ParameterStore store({}, kUpdateElements);
  store.initialise(std::vector<float>(kUpdateElements, 1));
  std::thread::id told;
  bool done = false;
  runner.start(store.prepareApply({gradientOf(1)}), [&] {
    told = std::this_thread::get_id();
    done = true;
  });
  settleUntil(done);
  EXPECT_EQ(told, std::this_thread::get_id());
}

TEST_F(ComputeRunnerTest, UpdatesOfAShardAndItsReplicaRunTogether) {
  ComputeRunner runner(loop_);
  std::vector<std::unique_ptr<optimizer::ParameterStore>> stores;
  std::vector<std::shared_ptr<optimizer::UpdateJob>> jobs;
  int left = 2;
  bool done = false;
  for (int i = 0; i < 2; ++i) {
    stores.push_back(
        std::make_unique<optimizer::ParameterStore>(cluster::OptimizerSpec{}, kUpdateElements));
    stores.back()->initialise(std::vector<float>(kUpdateElements, 1));
    jobs.push_back(stores.back()->prepareApply({gradientOf(1)}));
    runner.start(jobs.back(), [&] { done = --left == 0; });
  }
  settleUntil(done);
  for (int i = 0; i < 2; ++i) {
    stores[static_cast<size_t>(i)]->commit(jobs[static_cast<size_t>(i)]);
    EXPECT_LT(stores[static_cast<size_t>(i)]->current()->data()[kUpdateElements - 1], 1);
  }
}

// The job outlives the runner, as nobody waits for it.
TEST_F(ComputeRunnerTest, OneThatEndsDropsWhatWaits) {
  optimizer::ParameterStore store({}, kUpdateElements);
  store.initialise(std::vector<float>(kUpdateElements, 1));
  const auto job = store.prepareApply({gradientOf(1)});
  {
    ComputeRunner runner(loop_);
    runner.start(job, [] {});
  }
  EXPECT_EQ(store.current()->data()[0], 1) << "it was not committed";
}

}  // namespace
}  // namespace dtf::host
