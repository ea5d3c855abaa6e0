#include "common/host/ps_server.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "common/base/paused.h"
#include "tests/unit/host/ps_world.h"

namespace dtf::host {
namespace {

using replication::MemberState;
using std::chrono::hours;
using std::chrono::milliseconds;
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

TEST(PsServer, ARepeatedHelloKeepsTheWorkerWhileOneConnectionLives) {
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
  world.loop.live(milliseconds(900));
  EXPECT_EQ(stateOf(world, 0), MemberState::kJoined) << "it may come back";
  world.loop.live(milliseconds(200));
  EXPECT_EQ(stateOf(world, 0), MemberState::kLost) << "well before its lease has run out";
}

TEST(PsServer, AWorkerWhoseConnectionBrokeKeepsItsPlaceWhenItComesBackAtOnce) {
  PsWorld world(1, 1);
  auto connection = world.client();
  world.hello(*connection, 0, kOne);
  connection = nullptr;
  world.loop.live(milliseconds(500));
  auto next = world.client();
  auto control = world.hello(*next, 0, kOne);
  for (int i = 0; i < 20; ++i) {
    world.loop.live(seconds(1));
    EXPECT_EQ(world.refusal(control.heartbeatRequest().send().ignoreResult()), "");
  }
  EXPECT_EQ(stateOf(world, 0), MemberState::kJoined);
}

// Calls that the earlier connection brought, and that are not read yet, must not take effect after
// newer ones.
TEST(PsServer, ANewConnectionOfAProcessClosesItsEarlierOnes) {
  PsWorld world(1, 1);
  const auto hello = [&](net::RpcConnection& connection, uint32_t number) {
    auto request = connection.bootstrap().castAs<schema::PsGate>().helloRequest();
    wire::encodeHello(wire::linkOptions(world.jobSpec(), {JobKind::kWorker, 0}, kOne),
                      {JobKind::kPs, 0}, request.initHello(), number);
    auto answer = request.send();
    schema::PsControl::Client control = answer.getControl();
    EXPECT_EQ(world.refusal(answer.ignoreResult()), "");
    return control;
  };
  auto first = world.client();
  auto second = world.client();
  auto before = hello(*first, 0);
  auto now = hello(*second, 1);
  EXPECT_NE(world.refusal(before.heartbeatRequest().send().ignoreResult()), "");
  EXPECT_EQ(world.refusal(now.heartbeatRequest().send().ignoreResult()), "");
  world.loop.live(seconds(5));
  EXPECT_EQ(stateOf(world, 0), MemberState::kJoined);
}

TEST(PsServer, WhoAsksIsToldWhyThePsEnds) {
  PsWorld world(1, 1);
  auto connection = world.client();
  auto control = world.hello(*connection, 0, kOne);
  std::string reason;
  auto asked = control.awaitEndRequest().send().ignoreResult().eagerlyEvaluate(
      [&](kj::Exception&& e) { reason = net::toError(e).message(); });
  world.loop.live(seconds(1));
  EXPECT_EQ(reason, "");
  world.server().end(Error(ErrorCode::kUnavailable, "worker/1 is missing"), 0);
  world.loop.settle();
  EXPECT_EQ(reason, "worker/1 is missing");
}

arena::ModelDeclaration smallModel() {
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout({{"v", Shape{16}, {{0, 0, 16}}}}, 1);
  model.steps = 10;
  return model;
}

std::string declare(PsWorld& world, schema::PsControl::Client& control) {
  auto request = control.declareRequest();
  wire::encodeModel(smallModel(), request.initModel());
  return world.refusal(request.send().ignoreResult());
}

std::string bulkHello(PsWorld& world, net::RpcConnection& connection, uint32_t rank) {
  auto request = connection.bootstrap().castAs<schema::PsDataGate>().helloRequest();
  wire::encodeHello(wire::linkOptions(world.jobSpec(), {JobKind::kWorker, rank}, kOne),
                    {JobKind::kPs, 0}, request.initHello());
  std::string not_yet;
  const std::string refused = world.refusal(
      request.send().then([&](auto&& answer) { not_yet = answer.getNotYet().cStr(); }));
  return refused + not_yet;
}

TEST(PsServer, ABulkConnectionBelongsToAWorkerThatHasDeclared) {
  PsWorld world(1, 2);
  auto chief = world.client();
  auto other = world.client();
  auto chiefs = world.hello(*chief, 0, kOne);
  auto others = world.hello(*other, 1, kOne);
  ASSERT_EQ(declare(world, chiefs), "");
  auto bulk = world.bulkClient();
  EXPECT_NE(bulkHello(world, *bulk, 1).find("worker/1 has not declared the model to ps/0"),
            std::string::npos);
  ASSERT_EQ(declare(world, others), "");
  EXPECT_EQ(bulkHello(world, *bulk, 1), "");
}

// The status of the clusters does not depend on the caller's good will.
TEST(PsServer, AHelloWithoutAnAddressIsRefused) {
  PsWorld world(1, 1);
  auto connection = world.client();
  auto request = connection->bootstrap().castAs<schema::PsGate>().helloRequest();
  wire::LinkOptions self = wire::linkOptions(world.jobSpec(), {JobKind::kWorker, 0}, kOne);
  self.workers.clear();
  wire::encodeHello(self, {JobKind::kPs, 0}, request.initHello());
  EXPECT_NE(world.refusal(request.send().ignoreResult())
                .find("worker/0 sent no address from its cluster file"),
            std::string::npos);
}

std::string peerHello(PsWorld& world, net::RpcConnection& connection, TaskId self) {
  auto request = connection.bootstrap().castAs<schema::PsGate>().peerRequest();
  wire::encodeHello(wire::linkOptions(world.jobSpec(), self, kOne), {JobKind::kPs, 0},
                    request.initHello());
  request.setFollower(kj::heap<schema::SyncFollower::Server>());
  return world.refusal(request.send().ignoreResult());
}

TEST(PsServer, OnlyAnotherPsMayFollowAndBeGreetedForIt) {
  PsWorld world(2, 1);
  bool stranger_closed = false, follower_closed = false;
  auto stranger = world.client();
  auto follower = world.client();
  EXPECT_NE(peerHello(world, *stranger, {JobKind::kWorker, 0}).find("worker/0 does not follow"),
            std::string::npos);
  EXPECT_NE(peerHello(world, *stranger, {JobKind::kPs, 0}).find("ps/0 does not follow"),
            std::string::npos);
  EXPECT_EQ(peerHello(world, *follower, {JobKind::kPs, 1}), "");
  auto watched = stranger->onDisconnect()
                     .then([&] { stranger_closed = true; }, [&](auto&&) { stranger_closed = true; })
                     .eagerlyEvaluate(nullptr);
  auto kept = follower->onDisconnect()
                  .then([&] { follower_closed = true; }, [&](auto&&) { follower_closed = true; })
                  .eagerlyEvaluate(nullptr);
  world.loop.live(wire::kHelloDeadline + seconds(1));
  EXPECT_TRUE(stranger_closed) << "it owes a hello still";
  EXPECT_FALSE(follower_closed);
}

std::string fail(PsWorld& world, schema::PsControl::Client& control, const std::string& reason) {
  auto request = control.failRequest();
  request.setReason(reason);
  return world.refusal(request.send().ignoreResult());
}

TEST(PsServer, AWorkersReasonIsCutAndMadeHarmless) {
  PsWorld world(1, 1);
  auto connection = world.client();
  auto control = world.hello(*connection, 0, kOne);
  fail(world, control, "\x1b[2Jgone\n" + std::string(1 << 20, 'x'));
  world.loop.live(seconds(3));
  ASSERT_TRUE(world.ended());
  try {
    world.server().result();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message().find("the job was ended by worker/0: ?[2Jgone xxx"), 0u)
        << error.message().substr(0, 80);
    EXPECT_LT(error.message().size(), wire::kReasonBytesMax + 100);
  }
}

TEST(PsServer, AWorkerThatHasFinishedEndsTheJobNoMore) {
  PsWorld world(1, 2);
  auto first = world.client();
  auto second = world.client();
  auto one = world.hello(*first, 0, kOne);
  auto two = world.hello(*second, 1, kOne);
  ASSERT_EQ(world.refusal(two.finishRequest().send().ignoreResult()), "");
  EXPECT_EQ(fail(world, two, "too late"),
            "worker/1 has finished, so its failure doesn't end the job");
  world.loop.live(seconds(3));
  EXPECT_FALSE(world.ended());
  fail(world, one, "the disk is gone");
  world.loop.live(seconds(3));
  EXPECT_TRUE(world.ended());
}

std::string leave(PsWorld& world, schema::PsControl::Client& control, const std::string& reason) {
  auto request = control.failRequest();
  request.setReason(reason);
  request.setLeaves(true);
  return world.refusal(request.send().ignoreResult());
}

std::string errorOf(PsWorld& world) {
  try {
    world.server().result();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(PsServer, TheLastWorkerThatLeavesEndsThePsWithTheReasonOfTheFirst) {
  PsWorld world(1, 2);
  auto first = world.client();
  auto second = world.client();
  auto one = world.hello(*first, 0, kOne);
  auto two = world.hello(*second, 1, kOne);
  EXPECT_EQ(leave(world, two, "lost \"ps/1\"\n"), "");
  world.loop.live(seconds(3));
  EXPECT_FALSE(world.ended()) << "worker/0 may go on";
  EXPECT_EQ(stateOf(world, 1), MemberState::kLost);
  EXPECT_EQ(leave(world, one, "nobody is left"), "");
  world.loop.live(seconds(3));
  ASSERT_TRUE(world.ended());
  EXPECT_EQ(errorOf(world), "no worker is left; worker/1 left first: lost 'ps/1' ");
}

TEST(PsServer, AWorkerThatIsBackHasNotLeft) {
  PsWorld world(1, 2);
  auto first = world.client();
  auto second = world.client();
  auto one = world.hello(*first, 0, kOne);
  auto two = world.hello(*second, 1, kOne);
  EXPECT_EQ(leave(world, two, "lost ps/1"), "");
  auto third = world.client();
  auto again = world.hello(*third, 1, Incarnation{2});
  EXPECT_EQ(leave(world, one, "lost ps/1"), "");
  world.loop.live(seconds(3));
  EXPECT_FALSE(world.ended());
  EXPECT_EQ(leave(world, again, "still no ps/1"), "");
  world.loop.live(seconds(3));
  ASSERT_TRUE(world.ended());
  EXPECT_EQ(errorOf(world), "no worker is left; worker/0 left first: lost ps/1");
}

// Otherwise it would wait for a ps that has gone.
TEST(PsServer, AWorkerThatIsLateToAJobThatWasEndedIsTold) {
  PsWorld world(1, 2);
  auto first = world.client();
  auto one = world.hello(*first, 1, kOne);
  fail(world, one, "no such file");
  world.loop.live(seconds(3));
  EXPECT_FALSE(world.ended());
  auto late = world.client();
  auto request = late->bootstrap().castAs<schema::PsGate>().helloRequest();
  wire::encodeHello(wire::linkOptions(world.jobSpec(), {JobKind::kWorker, 0}, kOne),
                    {JobKind::kPs, 0}, request.initHello());
  EXPECT_EQ(world.refusal(request.send().ignoreResult()),
            "the job was ended by worker/1: no such file");
  world.loop.live(seconds(5));
  EXPECT_TRUE(world.ended());
}

TEST(PsServer, ASignalEndsTheWaitForLateWorkers) {
  PsWorld world(1, 2);
  auto first = world.client();
  auto one = world.hello(*first, 1, kOne);
  fail(world, one, "no such file");
  world.server().onSignal(SIGTERM);
  EXPECT_TRUE(world.ended());
  EXPECT_EQ(errorOf(world), "the job was ended by worker/1: no such file");
}

TEST(PsServer, ASecondSignalIsToldToWhoeverWaits) {
  PsWorld world(1, 2);
  auto connection = world.client();
  auto control = world.hello(*connection, 0, kOne);
  auto request = control.barrierRequest();
  request.setName("start");
  std::string told;
  auto waits = request.send().ignoreResult().eagerlyEvaluate(
      [&](kj::Exception&& e) { told = net::toError(e).message(); });
  world.server().onSignal(SIGTERM);
  world.loop.live(seconds(1));
  EXPECT_EQ(told, "");
  world.server().onSignal(SIGTERM);
  world.loop.live(seconds(1));
  EXPECT_EQ(told, "ps/0 was ended by signal 15");
  ASSERT_TRUE(world.ended());
  EXPECT_EQ(world.server().result(), 128 + SIGTERM);
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

TEST(PsServer, ASignalOnceTheWorkersAreGoneIsNoCleanEnd) {
  PsWorld world(1, 1);
  auto connection = world.client();
  world.hello(*connection, 0, kOne);
  connection = nullptr;
  world.loop.settle();
  world.server().onSignal(SIGTERM);
  world.loop.live(seconds(1));
  EXPECT_TRUE(world.ended());
  EXPECT_EQ(world.server().result(), 128 + SIGTERM);
}

// In both cases: the trained steps are in a checkpoint, or in none.
TEST(PsServer, AJobThatIsStoppedUnsavedIsNoCleanEnd) {
  for (const bool saved : {false, true}) {
    PsWorld world(1, 1);
    auto connection = world.client();
    auto control = world.hello(*connection, 0, kOne);
    ASSERT_EQ(declare(world, control), "");
    world.shard().initialise(0, kOne, std::vector<float>(16));
    world.server().onSignal(SIGTERM);
    if (saved) world.shard().cuts().noteSaved(0);
    ASSERT_EQ(world.refusal(control.finishRequest().send().ignoreResult()), "");
    world.loop.live(seconds(3));
    EXPECT_TRUE(world.ended());
    EXPECT_EQ(world.server().result(), saved ? 0 : 128 + SIGTERM);
  }
}

// Only the chief may pause a job.
TEST(PsServer, APausedJobIsToBeStartedAgain) {
  PsWorld world(1, 2);
  auto first = world.client();
  auto second = world.client();
  auto chief = world.hello(*first, 0, kOne);
  auto worker = world.hello(*second, 1, kOne);
  EXPECT_EQ(world.refusal(worker.pauseRequest().send().ignoreResult()),
            "worker/1 tried to pause the job; only worker/0 may");
  EXPECT_EQ(world.refusal(chief.pauseRequest().send().ignoreResult()), "");
  for (auto* control : {&chief, &worker})
    ASSERT_EQ(world.refusal(control->finishRequest().send().ignoreResult()), "");
  world.loop.live(seconds(3));
  EXPECT_TRUE(world.ended());
  EXPECT_EQ(world.server().result(), kPausedExitCode);
  EXPECT_TRUE(world.server().endedWell());
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
}  // namespace dtf::host
