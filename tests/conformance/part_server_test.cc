// A task that serves, against clients and tasks that are late, doubled, hostile, frozen or gone:
// single messages over real sockets. Scenarios 19 and 20.

#include "common/serving/part_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <thread>
#include <utility>

#include "common/base/error.h"
#include "common/engine/session.h"
#include "tests/conformance/part_server_fixture.h"

namespace dtf::serving {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(PartServerTest, WhatComesBeforeItsStepIsParked) {
  registerPart(receivingPart());
  auto worker0 = peer();
  EXPECT_FALSE(worker0.send(1, 3));
  EXPECT_FALSE(worker0.send(2, 4));
  EXPECT_EQ(status()["sessions"][0]["parked"], 2);
  EXPECT_EQ(run(1), 30);
  EXPECT_EQ(run(2), 40);
  const auto load = client_->ask(session_.loadRequest());
  EXPECT_EQ(load.getSteps() + load.getParked() + load.getOwnedBytes() + load.getWaiting(), 0u);
}

TEST_F(PartServerTest, WhatComesLateOrTwiceHasNoEffect) {
  registerPart(receivingPart());
  auto worker0 = peer();
  EXPECT_FALSE(worker0.send(1, 3));
  EXPECT_THAT(failureOf([&] { worker0.send(1, 5); }), HasSubstr("was sent before"));
  EXPECT_EQ(run(1), 30) << "the first";
  EXPECT_TRUE(worker0.send(1, 5)) << "the step is over";
  EXPECT_THAT(failureOf([&] { run(1); }), HasSubstr("has begun before"));
  abort(2, Error(ErrorCode::kBadData, "fantasia!"));
  EXPECT_TRUE(worker0.send(2, 5));
  EXPECT_EQ(failureOf([&] { run(2); }), "fantasia!");
  EXPECT_FALSE(worker0.send(3, 5));
  EXPECT_EQ(run(3), 50);
  EXPECT_EQ(status()["sessions"][0]["parked"], 0);
}

TEST_F(PartServerTest, OnlyTheProcessOfTheRegistrationIsHeard) {
  registerPart(receivingPart());
  EXPECT_THAT(failureOf([&] { peer(kThere, {76}).send(1, 3); }), HasSubstr("started again"));
  EXPECT_THAT(failureOf([&] {
                peer({JobKind::kPs, 0}).send(1, 3);
              }),
              HasSubstr("doesn't come from ps/0"));
  auto worker0 = peer();
  EXPECT_THAT(failureOf([&] { worker0.send(1, 3, 1); }), HasSubstr("edge 1"));
  EXPECT_THAT(failureOf([&] { worker0.send(1, 3, 0, 3); }), HasSubstr("12 bytes instead of 8"));
  EXPECT_THAT(failureOf([&] {
                Peer(reactor_, harness_.server(kHere).port(), kThere, kPeer, {JobKind::kWorker, 2});
              }),
              HasSubstr("this is worker/1, not worker/2"));
  EXPECT_THAT(failureOf([&] {
                Peer(reactor_, harness_.server(kHere).port(), kThere, kPeer, kHere,
                     {.number = kSession.number + 1, .secret = {1, 1}});
              }),
              HasSubstr("no session"));
  EXPECT_FALSE(worker0.send(1, 3));
  EXPECT_EQ(run(1), 30);
}

// The status shows the session's number to anyone; only the secret proves the session.
TEST_F(PartServerTest, WhoDoesntKnowTheSecretIsNobody) {
  registerPart(receivingPart());
  const wire::SessionToken guessed{.number = kSession.number,
                                   .secret = {kSession.secret[0], kSession.secret[1] + 1}};
  EXPECT_THAT(failureOf([&] {
                Peer(reactor_, harness_.server(kHere).port(), kThere, kPeer, kHere, guessed);
              }),
              HasSubstr("worker/1 has no session feed"));
  RawClient another(reactor_, harness_.server(kHere).port());
  EXPECT_THAT(failureOf([&] { open(another, {.number = 1}); }),
              HasSubstr("a session needs a secret"));
  const std::string told = status().dump();
  EXPECT_THAT(told, AllOf(HasSubstr("feed"), ::testing::Not(HasSubstr("5ec7e7")),
                          ::testing::Not(HasSubstr(std::to_string(kSession.secret[0])))));
}

// The compilation may end before or after the release.
TEST_F(PartServerTest, APartIsReleasedAlsoWhileItIsCompiled) {
  const auto part = receivingPart();
  for (int repeat = 0; repeat < 10; ++repeat) {
    auto request = session_.registerPartRequest();
    request.setPlan(kPlan);
    request.setDigest(engine::digestOf(*part));
    wire::encodePart(part, {{kThere, kPeer}}, client_->connection.stream(), request.initPart());
    auto registered = request.send();
    auto release = session_.releasePartRequest();
    release.setPlan(kPlan);
    auto released = release.send();
    const std::string failure = failureOf([&] { registered.wait(reactor_.wait_scope); });
    EXPECT_THAT(failure, ::testing::AnyOf("", HasSubstr("the plan 1 was released meanwhile")));
    released.wait(reactor_.wait_scope);
    EXPECT_EQ(status()["sessions"][0]["plans"], 0);
    EXPECT_EQ(status()["held_bytes"], 0);
  }
}

TEST_F(PartServerTest, AStepThatWaitsInVainEndsAtItsDeadline) {
  registerPart(receivingPart());
  EXPECT_THAT(failureOf([&] { run(1, 20); }),
              AllOf(HasSubstr("worker/1"), HasSubstr("step 1"), HasSubstr("0.02 s")));
  EXPECT_FALSE(peer().send(2, 4));
  EXPECT_EQ(run(2), 40);
}

TEST_F(PartServerTest, AnAbortWakesWhoWaits) {
  registerPart(receivingPart());
  auto running = start(1);
  awaitStatus([](const auto& status) { return status["sessions"][0]["waiting"] == 1; });
  abort(1, Error(ErrorCode::kTrainingFailed, "fantasia!"));
  EXPECT_EQ(failureOf([&] { running.wait(client_->reactor.wait_scope); }), "fantasia!");
  EXPECT_EQ(status()["sessions"][0]["steps"], 0);
}

TEST_F(PartServerTest, AnAbortIsAnsweredWhenNothingComputesAnyMore) {
  std::latch computing(1);
  std::atomic<bool> computed{false};
  acted_ = [&] {
    computing.count_down();
    go_on_.wait();
    computed = true;
  };
  registerPart(receivingPart());
  peer().send(1, 3);
  auto running = start(1);
  // The call leaves with the next turn of this loop.
  client_->ask(session_.loadRequest());
  computing.wait();
  EXPECT_THAT(failureOf([&] { start(2).wait(client_->reactor.wait_scope); }),
              HasSubstr("another one runs"));
  auto request = session_.abortRequest();
  request.setStep(1);
  request.setCause("dtf(bad_data): fantasia!");
  auto aborted = request.send();
  client_->ask(session_.loadRequest());  // by now the abort has arrived, too
  EXPECT_FALSE(aborted.poll(client_->reactor.wait_scope));
  go_on_.count_down();
  aborted.wait(client_->reactor.wait_scope);
  EXPECT_TRUE(computed);
  EXPECT_EQ(failureOf([&] { running.wait(client_->reactor.wait_scope); }), "fantasia!");
}

TEST_F(PartServerTest, ASessionEndsWithItsClient) {
  registerPart(receivingPart());
  auto worker0 = peer();
  worker0.send(7, 3);
  {
    auto running = start(1);
    awaitStatus([](const auto& status) { return status["sessions"][0]["waiting"] == 1; });
  }
  session_ = nullptr;
  client_.reset();
  awaitStatus([](const auto& status) { return status["sessions"].empty(); });
  EXPECT_EQ(status()["held_bytes"], 0);
  EXPECT_THAT(failureOf([&] { worker0.send(7, 3); }), HasSubstr("ended"));
}

TEST_F(PartServerTest, APartIsRegisteredOnce) {
  const auto part = receivingPart();
  registerPart(part);
  registerPart(part);
  EXPECT_EQ(status()["sessions"][0]["plans"], 1);
  part->edges_total = 2;
  EXPECT_THAT(failureOf([&] { registerPart(part); }), HasSubstr("another part"));
  auto release = session_.releasePartRequest();
  release.setPlan(kPlan);
  client_->ask(kj::mv(release));
  EXPECT_THAT(failureOf([&] { run(1); }), HasSubstr("no plan 1"));
  registerPart(part);
  EXPECT_EQ(status()["sessions"][0]["plans"], 1);
}

TEST_F(PartServerTest, PartsThatLieAreRefused) {
  EXPECT_THAT(failureOf([&] { registerPart(receivingPart(), kPlan, 1); }), HasSubstr("digest"));
  const auto refusal = [this](const std::function<void(TaskPart&)>& change) {
    const auto part = receivingPart();
    change(*part);
    return failureOf([&] { registerPart(part); });
  };
  EXPECT_THAT(refusal([](TaskPart& part) { part.task = kThere; }), HasSubstr("this is worker/1"));
  EXPECT_THAT(refusal([](TaskPart& part) { part.edges.clear(); }), HasSubstr("'received'"));
  EXPECT_THAT(refusal([](TaskPart& part) { part.edges[0].number = 1; }), HasSubstr("'received'"));
  EXPECT_THAT(refusal([](TaskPart& part) { part.fetches[0].index = 1; }), HasSubstr("fetch"));
  EXPECT_THAT(refusal([](TaskPart& part) {
                graph::Builder b(part.graph);
                const auto device = b.deviceScope(graph::fullDevice({JobKind::kPs, 0}).str());
                b.constant({1}, 1);
              }),
              HasSubstr("worker/1 doesn't have"));
  EXPECT_THAT(refusal([](TaskPart& part) {
                graph::Builder b(part.graph);
                const auto device = b.deviceScope(graph::fullDevice(kHere).str());
                b.placeholder("x", DType::kFloat32, {1});
              }),
              AllOf(HasSubstr("'x'"), HasSubstr("nothing feeds it")));
  EXPECT_THAT(refusal([](TaskPart& part) {
                graph::Builder b(part.graph);
                const auto device = b.deviceScope(graph::fullDevice(kHere).str());
                b.constant({int64_t{1} << 40}, 1);
              }),
              HasSubstr("8"));
  EXPECT_EQ(status()["held_bytes"], 0);
  registerPart(receivingPart());
}

TEST_F(PartServerTest, AStepsFeedsAreChecked) {
  const auto part = receivingPart();
  graph::Builder b(part->graph);
  {
    const auto device = b.deviceScope(graph::fullDevice(kHere).str());
    b.placeholder("x", DType::kFloat32, {1});
  }
  part->feeds = {"x"};
  registerPart(part);
  EXPECT_THAT(failureOf([&] { run(1); }), HasSubstr("fed 0 tensors where the part has 1"));
}

// The first connection broke before the reply arrived, and the task sees its end only later.
TEST_F(PartServerTest, AHelloThatIsSaidAgainTakesThePlaceOfTheFirst) {
  const uint16_t port = harness_.server(kHere).port();
  RawClient stranger(reactor_, port);
  EXPECT_THAT(failureOf([&] {
                open(stranger, {.number = kSession.number, .secret = {kSession.secret[0], 2}});
              }),
              HasSubstr("is open"));
  auto second = std::make_unique<RawClient>(reactor_, port);
  auto first = session_;
  session_ = open(*second, kSession);
  EXPECT_THAT(failureOf([&] { client_->ask(first.loadRequest()); }),
              HasSubstr("the session has ended"))
      << "what drives it now is the second connection";
  std::swap(client_, second);
  second = nullptr;  // the first connection
  // Each client has a connection of its own, so the task has long seen the end of that one.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(status()["sessions"].size(), 1U);
  registerPart(receivingPart());
  EXPECT_FALSE(peer().send(1, 3));
  EXPECT_EQ(run(1), 30) << "the end of the first connection isn't the session's";
}

TEST_F(PartServerTest, SessionsAreBounded) {
  registerPart(receivingPart());
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<schema::GraphSession::Client> sessions;
  EXPECT_THAT(
      failureOf([&] {
        clients.push_back(std::make_unique<RawClient>(reactor_, harness_.server(kHere).port()));
        open(*clients.back(), kSession);
      }),
      HasSubstr("is open"));
  EXPECT_THAT(
      failureOf([&] {
        for (uint64_t id = 1; id <= 4; ++id) {
          clients.push_back(std::make_unique<RawClient>(reactor_, harness_.server(kHere).port()));
          sessions.push_back(open(*clients.back(), {.number = id, .secret = {id, id}}));
        }
      }),
      HasSubstr("as many as it may"));
  EXPECT_EQ(sessions.size(), 3u) << "one more is open since the beginning";
}

// RemoteTasks reports tasks that end, freeze, or don't exist.
class LostTaskTest : public PartServerTest {
 protected:
  LostTaskTest() {
    graph::Builder b(graph_);
    const Output x = b.relu(b.placeholder("x", DType::kFloat32, {1}));
    const auto device = b.deviceScope(graph::fullDevice(kHere).str());
    b.node("Tanh", {x}, {}, "act");
  }
  std::string step(engine::Session& session) {
    const Tensor one(DType::kFloat32, {1});
    return errorText([&] {
      session.run(std::vector<engine::Feed>{{"x", &one}}, std::vector<std::string>{"act"});
    });
  }
  graph::Graph graph_{graph::standardOps()};
};

TEST_F(LostTaskTest, ATaskThatEndsIsNamed) {
  engine::Session session(graph_, harness_.connect());
  EXPECT_EQ(step(session), "");
  harness_.stop(kHere);
  EXPECT_THAT(step(session), AllOf(HasSubstr("worker/1"), HasSubstr("lost")));
  EXPECT_THAT(step(session), HasSubstr("lost")) << "from now on";
}

TEST_F(LostTaskTest, AStepThatLastsTooLongEndsWithTheLateOnesNamed) {
  acted_ = [&] { go_on_.wait(); };
  auto options = harness_.options();
  options.limits.step_max = std::chrono::milliseconds(50);
  options.limits.abort_max = std::chrono::milliseconds(50);
  engine::Session session(graph_, std::make_unique<wire::RemoteTasks>(options));
  EXPECT_THAT(step(session),
              AllOf(HasSubstr("step 1 has not ended within 0.05 s"), HasSubstr("worker/1")));
  EXPECT_THAT(step(session), HasSubstr("worker/1")) << "it hasn't answered to the abort either";
  go_on_.count_down();
}

TEST_F(LostTaskTest, AStepIsAbortedByItsClientAndTheNextRuns) {
  std::latch computing(1);
  acted_ = [&, is_first = true]() mutable {
    if (!std::exchange(is_first, false)) return;
    computing.count_down();
    go_on_.wait();
  };
  engine::Session session(graph_, harness_.connect());
  std::string told;
  std::thread client([&] { told = step(session); });
  computing.wait();
  session.abort(Error(ErrorCode::kUnavailable, "nobody wants it"));
  go_on_.count_down();
  client.join();
  EXPECT_THAT(told, HasSubstr("nobody wants it"));
  EXPECT_EQ(step(session), "");
  session.abort(Error(ErrorCode::kUnavailable, "no step runs"));
  EXPECT_EQ(step(session), "");
}

TEST_F(LostTaskTest, TargetsThatAreWrongAreNamed) {
  EXPECT_THAT(errorText([] { wire::RemoteTasks({.targets = {"grpc://localhost:1"}}); }),
              HasSubstr("dtf://"));
  const Fd nobody = dtf::testing::listenOnLoopback();  // listens, and never replies
  const std::string address = "127.0.0.1:" + std::to_string(dtf::testing::portOf(nobody));
  EXPECT_THAT(errorText([&] {
                wire::RemoteTasks({.targets = {"dtf://" + address},
                                   .limits = {.connect_max = std::chrono::milliseconds(50)}});
              }),
              HasSubstr(address));
  const std::string target = harness_.server(kHere).target();
  EXPECT_THAT(errorText([&] {
                wire::RemoteTasks({.targets = {target, target}});
              }),
              HasSubstr("two targets"));
  const std::string same = "dtf://localhost" + target.substr(target.rfind(':'));
  EXPECT_THAT(errorText([&] {
                wire::RemoteTasks({.targets = {target, same}});
              }),
              HasSubstr("two targets"))
      << "by another name";
  EXPECT_THAT(errorText([&] { wire::RemoteTasks({.targets = {target + "/ps/7"}}); }),
              HasSubstr("ps/7 is wanted"))
      << "another task answers there";
  for (const char* wrong : {"/", "/ps", "/ps/", "/ps/01", "/chief/0", "/ps/0/x"})
    EXPECT_THAT(errorText([&] { wire::RemoteTasks({.targets = {target + wrong}}); }),
                HasSubstr("the text after the port is not a task"))
        << wrong;
}

}  // namespace
}  // namespace dtf::serving
