// The simulator itself: a replay repeats every event, and it reaches the cases it is made for.
// mutants_test.cc shows that it finds mistakes.

#include <gtest/gtest.h>

#include <set>

#include "common/base/log.h"
#include "tests/session_sim/replicas_sim.h"
#include "tests/session_sim/session_sim.h"

namespace dtf::sim {

namespace {

class SessionSimulation : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::init("sim", log::Level::kError); }
};

TEST_F(SessionSimulation, TheSameSeedIsTheSameRunAndAnotherIsAnother) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const SessionReport first = runSessionSeed(seed);
    const SessionReport second = runSessionSeed(seed);
    EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
    hashes.insert(first.hash);
  }
  EXPECT_EQ(hashes.size(), 40U);
}

TEST_F(SessionSimulation, ATrainingIsTheSameWithItsSeedToo) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = kFirstReplicasSeed; seed < kFirstReplicasSeed + 40; ++seed) {
    const ReplicasReport first = runReplicasSeed(seed);
    const ReplicasReport second = runReplicasSeed(seed);
    EXPECT_EQ(first.hash, second.hash) << "seed " << seed;
    EXPECT_EQ(first.events, second.events) << "seed " << seed;
    hashes.insert(first.hash);
  }
  EXPECT_EQ(hashes.size(), 40U);
}

TEST_F(SessionSimulation, TrainingsReachWhatTheyAreMadeFor) {
  ReplicasReport sum;
  for (uint64_t seed = kFirstReplicasSeed; seed < kFirstReplicasSeed + 200; ++seed)
    sum += runReplicasSeed(seed);
  std::printf("%s\n", sum.text().c_str());
  EXPECT_GT(sum.clients.steps, 2'000U);
  EXPECT_GT(sum.clients.dropped, 20U);
  EXPECT_GT(sum.clients.recovered, 50U);
  EXPECT_GT(sum.task_kills, 50U);
  EXPECT_GT(sum.client_kills, 50U);
  EXPECT_GT(sum.disk_crashes, 3U);
  EXPECT_GT(sum.freezes, 20U);
  EXPECT_GT(sum.checkpoints, 500U);
}

// A simulation that never reaches the hard cases proves nothing about them.
TEST_F(SessionSimulation, ReachesWhatItIsMadeFor) {
  SessionReport sum;
  for (uint64_t seed = 0; seed < 200; ++seed) sum += runSessionSeed(seed);
  std::printf("%s\n", sum.text().c_str());
  EXPECT_GT(sum.clients.ended_well, 3'000U);
  EXPECT_GT(sum.clients.aborted, 100U);
  EXPECT_GT(sum.clients.lost, 100U);
  EXPECT_GT(sum.clients.late, 10U);
  EXPECT_GT(sum.clients.bad, 100U);
  EXPECT_GT(sum.task_restarts, 50U);
  EXPECT_GT(sum.client_restarts, 50U);
  EXPECT_GT(sum.stranger.late, 50U);
  EXPECT_GT(sum.stranger.doubled, 50U);
  EXPECT_GT(sum.stranger.dead, 50U);
  EXPECT_GT(sum.stranger.uninvited, 50U);
}

}  // namespace

}  // namespace dtf::sim
