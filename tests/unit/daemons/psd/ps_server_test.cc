#include "daemons/psd/ps_server.h"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/unit/daemons/psd/ps_world.h"

namespace dtf::psd {
namespace {

using ps::MemberState;
using std::chrono::hours;
using std::chrono::seconds;

MemberState stateOf(PsWorld& world, uint32_t rank) {
  return world.shard().status().members[rank].state;
}

TEST(PsServer, APauseBeyondTheLeaseCostsNobodyHisPlace) {
  PsWorld world(1, 1);
  auto connection = world.client();
  auto control = world.hello(*connection, 0, kOne);
  world.loop.pass(hours(1));
  ASSERT_EQ(stateOf(world, 0), MemberState::kJoined);
  control.heartbeatRequest().send().ignoreResult().detach([](kj::Exception&&) { FAIL(); });
  world.loop.live(seconds(9));
  EXPECT_EQ(stateOf(world, 0), MemberState::kJoined);
  world.loop.live(seconds(2));
  EXPECT_EQ(stateOf(world, 0), MemberState::kLost) << "while the ps is awake, the lease runs";
}

TEST(PsServer, AHelloSaidTwiceKeepsTheWorkerWhileOneConnectionLives) {
  PsWorld world(1, 1);
  auto older = world.client();
  auto newer = world.client();
  world.hello(*older, 0, kOne);
  world.hello(*newer, 0, kOne);
  older = nullptr;
  world.loop.settle();
  EXPECT_EQ(stateOf(world, 0), MemberState::kJoined);
}

TEST(PsServer, TheLastConnectionOfAWorkerThatClosesLosesIt) {
  PsWorld world(1, 1);
  auto older = world.client();
  auto newer = world.client();
  world.hello(*older, 0, kOne);
  world.hello(*newer, 0, kOne);
  newer = nullptr;
  older = nullptr;
  world.loop.settle();
  EXPECT_EQ(stateOf(world, 0), MemberState::kLost);
}

TEST(PsServer, ASignalWithoutAnyWorkerIsACleanEnd) {
  PsWorld world(1, 1);
  world.server().onSignal(SIGTERM);
  world.loop.live(seconds(3));
  EXPECT_TRUE(world.ended());
  EXPECT_EQ(world.server().result(), 0);
}

TEST(PsServer, ASignalAfterWhichTheWorkersFinishIsACleanEnd) {
  PsWorld world(1, 1);
  auto connection = world.client();
  auto control = world.hello(*connection, 0, kOne);
  world.server().onSignal(SIGTERM);
  auto beat = control.heartbeatRequest().send();
  world.loop.settle();
  EXPECT_TRUE(beat.wait(world.loop.waitScope()).getStopWanted());
  auto finished = control.finishRequest().send();
  world.loop.settle();
  finished.wait(world.loop.waitScope());
  world.loop.live(seconds(3));
  EXPECT_TRUE(world.ended());
  EXPECT_EQ(world.server().result(), 0);
}

TEST(PsServer, ASignalThatCutsTheJobShortSaysSo) {
  PsWorld world(1, 1);
  auto connection = world.client();
  world.hello(*connection, 0, kOne);
  world.server().onSignal(SIGTERM);
  connection = nullptr;  // the worker dies before it could save
  world.loop.live(seconds(1));
  EXPECT_TRUE(world.ended());
  EXPECT_EQ(world.server().result(), 128 + SIGTERM);
}

}  // namespace
}  // namespace dtf::psd
