// Runs thousands of seeded schedules of whole jobs (see schedule_world.h) and checks each against
// the promises of the design. A failure prints its seed and options; the same ones replay it.

#include <gtest/gtest.h>

#include "common/optimizer/optimizer.h"
#include "tests/support/repetitions.h"
#include "tests/unit/shard/schedule_world.h"

namespace dtf::shard {
namespace {

void expectNoProblem(World& world) {
  world.run();
  for (const std::string& problem : world.problems) ADD_FAILURE() << problem;
  EXPECT_TRUE(world.allWorkersDone()) << "nothing is left to happen, but somebody still waits";
}

// Returns the result of sync training with aggregate >= workers, for any schedule.
std::vector<float> syncReference(const WorldOptions& options) {
  cluster::OptimizerSpec spec;
  spec.kind = cluster::OptimizerSpec::Kind::kAdagrad;
  spec.learning_rate = 0.1;
  std::vector<float> values(16);
  std::vector<float> slot(16, 0.1f);
  optimizer::OptimizerClock clock(spec);
  for (uint64_t step = 0; step < options.steps; ++step) {
    std::vector<std::vector<float>> gradients;
    for (uint32_t rank = 0; rank < options.workers; ++rank) {
      const uint32_t quota = options.aggregate / options.workers +
                             (rank < options.aggregate % options.workers ? 1 : 0);
      for (uint32_t batch = 0; batch < quota; ++batch) {
        gradients.push_back(World::gradient(rank, step, batch));
      }
    }
    std::vector<const float*> pointers;
    for (const auto& gradient : gradients) pointers.push_back(gradient.data());
    std::vector<float> next(16);
    optimizer::updateRange(clock.next(),
                           {values.data(), next.data(), {slot.data(), nullptr}, pointers}, 0, 16);
    values = next;
  }
  return values;
}

WorldOptions drawOptions(uint64_t seed) {
  Random random(seed, 7);
  WorldOptions options;
  options.seed = seed;
  options.ps_tasks = 1 + static_cast<uint32_t>(random.below(3));
  options.workers = 1 + static_cast<uint32_t>(random.below(4));
  options.slow_updates = random.below(4) == 0;
  return options;
}

TEST(Schedules, SyncIsAPureFunctionOfTheSeed) {
  for (uint64_t seed = 0; seed < dtf::testing::repetitions(2000u) && !::testing::Test::HasFailure();
       ++seed) {
    WorldOptions options = drawOptions(seed);
    options.aggregate = options.workers + static_cast<uint32_t>(Random(seed, 8).below(5));
    options.crashes_max = seed % 3 == 0 ? 0 : 3;
    World world(options);
    SCOPED_TRACE(world.replayName());
    expectNoProblem(world);
    const std::vector<float> expected = syncReference(options);
    for (uint32_t ps = 0; ps < options.ps_tasks; ++ps) {
      EXPECT_EQ(world.status(ps).coordinator.global_step, options.steps);
      EXPECT_EQ(world.status(ps).coordinator.gradients_applied, options.steps * options.aggregate);
      EXPECT_EQ(world.parameters(ps), expected) << "ps " << ps;
    }
  }
}

TEST(Schedules, BackupWorkersGiveEveryPsTheSameSets) {
  uint64_t stale = 0;
  for (uint64_t seed = 0; seed < dtf::testing::repetitions(3000u) && !::testing::Test::HasFailure();
       ++seed) {
    WorldOptions options = drawOptions(seed);
    options.workers = 2 + static_cast<uint32_t>(seed % 4);
    options.aggregate = 1 + static_cast<uint32_t>(Random(seed, 8).below(options.workers - 1));
    options.crashes_max = seed % 3 == 0 ? 0 : 3;
    options.gone_for_good_max = static_cast<int>(options.workers - options.aggregate);
    World world(options);
    SCOPED_TRACE(world.replayName());
    expectNoProblem(world);
    stale += world.stale;
    for (uint32_t ps = 0; ps < options.ps_tasks; ++ps) {
      EXPECT_EQ(world.status(ps).coordinator.global_step, options.steps);
      EXPECT_EQ(world.parameters(ps), world.parameters(0)) << "ps " << ps;
    }
  }
  EXPECT_GT(stale, dtf::testing::repetitions(1000u))
      << "the schedules must be unfair enough to make gradients late";
}

// A job that applies each gradient as it comes, with deaths in every other seed.
WorldOptions drawOneByOne(uint64_t seed, uint64_t steps_max) {
  WorldOptions options = drawOptions(seed);
  options.steps = 1 + seed % steps_max;
  options.crashes_max = seed % 2 == 0 ? 0 : 3;
  options.gone_for_good_max = static_cast<int>(options.workers) - 1;
  return options;
}

void expectAllStepsOnce(World& world, const WorldOptions& options) {
  expectNoProblem(world);
  EXPECT_EQ(world.status(0).coordinator.global_step, options.steps);
  EXPECT_EQ(world.status(0).coordinator.gradients_applied, options.steps);
  for (uint32_t ps = 1; ps < options.ps_tasks; ++ps) {
    const uint64_t applied = world.status(ps).coordinator.gradients_applied;
    // A process that dies between its pushes has pushed to some ps only; each ps has a push whole
    // or not at all.
    EXPECT_LE(applied, options.steps + static_cast<uint64_t>(world.crashes));
    EXPECT_GE(applied + static_cast<uint64_t>(world.crashes), options.steps);
    if (world.crashes == 0) {
      EXPECT_EQ(applied, options.steps);
    }
  }
}

TEST(Schedules, BoundedNobodyRunsAheadAndNobodyWaitsForGood) {
  std::map<uint32_t, int64_t> lead_max;
  for (uint64_t seed = 0; seed < dtf::testing::repetitions(3000u) && !::testing::Test::HasFailure();
       ++seed) {
    WorldOptions options = drawOneByOne(seed, 24);
    options.staleness = static_cast<uint32_t>(Random(seed, 8).below(4));
    World world(options);
    SCOPED_TRACE(world.replayName());
    expectAllStepsOnce(world, options);
    int64_t& lead = lead_max[*options.staleness];
    lead = std::max(lead, world.lead_max);
  }
  // A worker's last push may arrive before its reply does.
  for (const auto& [staleness, lead] : lead_max) EXPECT_EQ(lead, staleness + 1) << staleness;
}

TEST(Schedules, AsyncAppliesExactlyTheStepsOfTheJob) {
  for (uint64_t seed = 0; seed < dtf::testing::repetitions(2000u) && !::testing::Test::HasFailure();
       ++seed) {
    const WorldOptions options = drawOneByOne(seed, 12);
    World world(options);
    SCOPED_TRACE(world.replayName());
    expectAllStepsOnce(world, options);
  }
}

}  // namespace
}  // namespace dtf::shard
