// The simulator itself: a replay repeats every event, and it reaches the cases it is made for.
// mutants_test.cc shows that it finds mistakes.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "common/base/log.h"
#include "tests/sim/cluster_sim.h"

namespace dtf::sim {

namespace {

class Simulation : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::init("sim", log::Level::kError); }
};

std::string firstProblem(const Plan& plan) {
  ClusterSim sim(plan, nullptr);
  const Report report = sim.run();
  return report.problems.empty() ? "" : report.problems.front();
}

const char* kindOf(const Plan& plan) {
  if (plan.hasBackups()) return "sync with backup workers";
  return plan.sync() ? "sync" : plan.bounded() ? "bounded" : "async";
}

TEST_F(Simulation, TheSameSeedIsTheSameRun) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Report first = runSeed(seed);
    const Report second = runSeed(seed);
    EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
  }
}

TEST_F(Simulation, DifferentSeedsAreDifferentRuns) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 0; seed < 60; ++seed) hashes.insert(runSeed(seed).hash);
  EXPECT_EQ(hashes.size(), 60U);
}

// Seeds that once broke a promise, by the fault they found. They were of jobs of steps.
TEST_F(Simulation, SeedsThatFoundSomethingStayMended) {
  const std::map<std::string, std::vector<uint64_t>> seeds = {
      {"a ps ended before its last answers had left", {209, 221, 348}},
      {"a job whose chief was lost at its end counted as finished", {12, 24, 28, 142}},
      {"a push too late was reported as applied", {75, 92, 109, 1371}},
      {"the folder of checkpoints was not durable after its first chief failed", {428}},
      {"a checkpoint taken back came back without its files after a power cut", {539}},
      {"a batch counted as lost that another process of its worker had brought", {1635}},
      {"a push repeated at once was told as too late two steps on", {977}},
      {"an attempt whose name could not be made durable stayed under way", {1910}},
      {"a worker failed of a ps that was lost once the end was saved, and the chief had left",
       {3433}},
      {"a push that was said again, late, ended the wait of the next one", {8272}},
      {"a chief ended a job while its last push was on its way to a ps", {17052}},
      {"a worker that was told to end when the chief had finished failed the job", {15725}},
      {"all waited for grants that a ps which was lost had given to nobody", {8538}},
      {"a gradient was whole while its connection was being made again", {144}},
  };
  for (const auto& [what, list] : seeds)
    for (const uint64_t seed : list)
      EXPECT_EQ(firstProblem(makePlanOfSteps(seed)), "") << what << ": seed " << seed;
}

TEST_F(Simulation, SeedsWithEpochsThatFoundSomethingStayMended) {
  const std::map<std::string, std::vector<uint64_t>> seeds = {
      {"a worker gave up while a short step awaited a lost one", {53}},
      {"a ps that had all parts let a worker wait for one that waited on another ps", {11283}},
  };
  for (const auto& [what, list] : seeds)
    for (const uint64_t seed : list) {
      EXPECT_GT(makePlan(seed).epochs, 0U) << "seed " << seed;
      EXPECT_EQ(firstProblem(makePlan(seed)), "") << what << ": seed " << seed;
    }
}

// A simulation that never reaches the hard cases proves nothing about them.
TEST_F(Simulation, ReachesWhatItIsMadeFor) {
  Report sum;
  uint64_t finished = 0;
  uint64_t failed = 0;
  uint64_t restarts = 0;
  uint64_t streamed = 0, narrow = 0, named = 0, bounded = 0;  // jobs, to their ends
  std::map<Fault::Since, int> moments;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const Report report = runSeed(seed);
    sum.applied += report.applied;
    sum.stale += report.stale;
    sum.fenced += report.fenced;
    sum.faults += report.faults;
    sum.checkpoints += report.checkpoints;
    sum.lives += report.lives;
    sum.restored += report.restored;
    sum.to_snapshots += report.to_snapshots;
    sum.stopped += report.stopped;
    sum.launched += report.launched;
    sum.given_up += report.given_up;
    sum.ps_restarts += report.ps_restarts;
    sum.went_back += report.went_back;
    sum.refilled += report.refilled;
    sum.missed += report.missed;
    for (const Fault::Since moment : report.moments) ++moments[moment];
    restarts += report.restarts;
    if (report.finished && makePlan(seed).streamsGradients()) ++streamed;
    if (report.finished && makePlan(seed).narrows) ++narrow;
    if (report.finished && makePlan(seed).namesRows()) ++named;
    if (report.finished && makePlan(seed).bounded()) ++bounded;
    ++(report.finished ? finished : failed);
  }
  std::printf(
      "500 seeds: %lu applied, %lu stale, %lu fenced, %u faults, %lu restarts, %u of ps, %u went "
      "back, %lu finished, %lu failed; %lu lives, %lu restored, %lu stopped, %lu checkpoints, %u "
      "to snapshots, %lu under dtf-launch, which ended %lu; %lu backup workers missed, %lu ps "
      "refilled\n",
      sum.applied, sum.stale, sum.fenced, sum.faults, restarts, sum.ps_restarts, sum.went_back,
      finished, failed, sum.lives, sum.restored, sum.stopped, sum.checkpoints, sum.to_snapshots,
      sum.launched, sum.given_up, sum.missed, sum.refilled);
  using Since = Fault::Since;
  for (const Since moment : {Since::kFirstTrained, Since::kGoingBack, Since::kPsIsBack,
                             Since::kAllJoined, Since::kStopped, Since::kFollowerUpdates}) {
    std::printf("moment %d: %d seeds\n", static_cast<int>(moment), moments[moment]);
    EXPECT_GT(moments[moment], 3) << "moment " << static_cast<int>(moment);
  }
  EXPECT_GT(sum.missed, 10U);
  EXPECT_GT(sum.refilled, 30U);
  EXPECT_GT(sum.applied, 5'000U);
  EXPECT_GT(sum.stale, 100U);
  EXPECT_GT(sum.fenced, 5U);
  EXPECT_GT(streamed, 100U);
  EXPECT_GT(narrow, 50U);
  EXPECT_GT(named, 20U);
  EXPECT_GT(bounded, 30U);
  EXPECT_GT(sum.faults, 300U);
  EXPECT_GT(sum.checkpoints, 300U);
  EXPECT_GT(sum.lives, 700U);
  EXPECT_GT(sum.restored, 100U);
  EXPECT_GT(sum.stopped, 10U);
  EXPECT_GT(sum.to_snapshots, 10U);
  EXPECT_GT(sum.launched, 200U);
  EXPECT_GT(sum.given_up, 10U);
  EXPECT_GT(restarts, 200U);
  EXPECT_GT(sum.ps_restarts, 200U);
  EXPECT_GT(sum.went_back, 50U);
  EXPECT_GT(finished, 350U);
  EXPECT_GT(failed, 4U);
}

TEST_F(Simulation, ReachesJobsWhoseWorkersHostTheShards) {
  std::map<std::string, int> finished;
  std::map<Fault::Since, int> moments;
  uint64_t lost = 0, refilled = 0, went_back = 0, missing_nothing = 0;
  int hybrid = 0, with_tables = 0, hurt_ps = 0;
  for (uint64_t seed = 0; seed < 800; ++seed) {
    const Plan plan = makePlan(seed);
    if (!plan.workers_host) continue;
    const Report report = runSeed(seed);
    if (report.finished) ++finished[kindOf(plan)];
    if (plan.isHybrid() && report.finished) {
      ++hybrid;
      with_tables += plan.sparse;
      hurt_ps += plan.lives[0].has(Fault::Kind::kKillPs) && report.ps_restarts > 0;
    }
    for (const Fault::Since moment : report.moments) ++moments[moment];
    lost += report.ps_restarts;
    refilled += report.refilled;
    went_back += report.went_back;
    missing_nothing += plan.losesNothing(plan.lives[0]) && report.refilled > 0;
  }
  std::printf(
      "workers that host: %lu shards lost, %lu refilled, %lu times back, %lu without loss\n", lost,
      refilled, went_back, missing_nothing);
  std::printf("beside ps: %d, %d with tables, %d whose ps were killed\n", hybrid, with_tables,
              hurt_ps);
  EXPECT_GT(hybrid, 20);
  EXPECT_GT(with_tables, 3);
  EXPECT_GT(hurt_ps, 3);
  for (const char* kind : {"sync", "sync with backup workers", "async", "bounded"}) {
    std::printf("workers that host, %s: %d\n", kind, finished[kind]);
    EXPECT_GT(finished[kind], 5) << kind;
  }
  using Since = Fault::Since;
  for (const Since moment : {Since::kGoingBack, Since::kPsIsBack, Since::kTrainsOn,
                             Since::kAllJoined, Since::kFollowerUpdates}) {
    std::printf("moment %d: %d seeds\n", static_cast<int>(moment), moments[moment]);
    EXPECT_GT(moments[moment], 1) << "moment " << static_cast<int>(moment);
  }
  EXPECT_GT(lost, 100U);
  EXPECT_GT(refilled, 20U);
  EXPECT_GT(went_back, 10U);
  EXPECT_GT(missing_nothing, 10U);
}

TEST_F(Simulation, ReachesEpochsOfEveryKind) {
  std::map<std::string, int> finished;
  uint64_t given_up_steps = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Plan plan = makePlan(seed);
    if (plan.epochs == 0) continue;
    const Report report = runSeed(seed);
    if (report.finished) ++finished[kindOf(plan)];
    given_up_steps += report.given_up_steps;
  }
  for (const char* kind : {"sync", "sync with backup workers", "async", "bounded"}) {
    std::printf("with epochs, %s: %d\n", kind, finished[kind]);
    EXPECT_GT(finished[kind], 7) << kind;
  }
  std::printf("steps of parts that were given up: %lu\n", given_up_steps);
  EXPECT_GT(given_up_steps, 1U);
}

}  // namespace

}  // namespace dtf::sim
