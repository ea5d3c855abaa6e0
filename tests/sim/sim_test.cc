// The simulator itself: it replays to the event, and it reaches what it is made for. That it finds
// mistakes, mutants_test.cc shows.

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

std::string firstProblem(uint64_t seed) {
  const Report report = runSeed(seed);
  return report.problems.empty() ? "" : report.problems.front();
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

// Seeds that have broken a promise once, by what was wrong.
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
    for (const uint64_t seed : list) EXPECT_EQ(firstProblem(seed), "") << what << ": seed " << seed;
}

// A simulation that never gets to the hard places proves nothing about them.
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
  EXPECT_GT(sum.fenced, 10U);
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

}  // namespace

}  // namespace dtf::sim
