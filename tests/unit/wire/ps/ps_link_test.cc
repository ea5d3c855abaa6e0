#include "common/wire/ps/ps_link.h"

#include <algorithm>

#include "tests/unit/wire/fake_cluster.h"

namespace dtf::wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class PsControlLinkTest : public fake::FakeCluster {
 protected:
  PsControlLinkTest() {
    options_.link.timeouts.heartbeat_seconds = 1;
    options_.link.timeouts.lease_seconds = 10;
    options_.link.timeouts.rejoin_seconds = 60;
  }
  ~PsControlLinkTest() noexcept override {}

  PsControlLink& open() {
    PsControlLink::Events events;
    events.on_lost = [this](const Error& error) { lost_.push_back(error.message()); };
    events.on_broken = [this](const Error& why) { broken_.push_back(why.message()); };
    events.on_stop_wanted = [this] { ++stops_wanted_; };
    events.on_replaced = [this] { ++replaced_; };
    events.on_awaited = [this](const Awaited& awaited) { awaited_.push_back(awaited.whom); };
    link_ =
        std::make_unique<PsControlLink>(loop_, options_.link, 0, options_.ps[0], std::move(events));
    get(link_->open());
    return *link_;
  }
  // Finishes the job; end_ has the result.
  kj::Promise<void> finish(PsControlLink& link) {
    end_ = "waits";
    return link.finish()
        .then([this] { end_ = "finished"; })
        .eagerlyEvaluate([this](kj::Exception&& e) { end_ = net::toError(e).message(); });
  }

  std::unique_ptr<PsControlLink> link_;
  std::string end_;
  std::vector<std::string> lost_;
  std::vector<std::string> broken_;
  std::vector<std::string> awaited_;
  int stops_wanted_ = 0;
  int replaced_ = 0;
};

TEST_F(PsControlLinkTest, HeartbeatsGoOnAtTheirPace) {
  open();
  loop_.live(seconds(30));
  EXPECT_GE(ps_[0].heartbeats, 29);
  EXPECT_LE(ps_[0].heartbeats, 32);
  EXPECT_TRUE(lost_.empty()) << lost_[0];
}

TEST_F(PsControlLinkTest, APsThatIsSilentForALeaseIsLostWhereNobodyWaitsForItsReturn) {
  options_.link.timeouts.rejoin_seconds = 0;
  open();
  ps_[0].answers_heartbeats = false;
  loop_.live(seconds(9));
  EXPECT_TRUE(lost_.empty()) << lost_[0];
  loop_.live(seconds(5));
  ASSERT_EQ(lost_.size(), 1u);
  EXPECT_EQ(lost_[0],
            "ps/0 (fake:1) has not answered a heartbeat for 10 s: it is frozen, or the network is "
            "cut");
}

TEST_F(PsControlLinkTest, AMachineThatStoodStillLosesNobody) {
  open();
  loop_.pass(seconds(100));
  loop_.live(seconds(3));
  EXPECT_TRUE(lost_.empty()) << lost_[0];
}

TEST_F(PsControlLinkTest, AClosedConnectionIsALostPsOnceWhereNobodyWaitsForItsReturn) {
  options_.link.timeouts.rejoin_seconds = 0;
  open();
  kill(0);
  loop_.live(seconds(20));
  ASSERT_EQ(lost_.size(), 1u);
  EXPECT_TRUE(lost_[0].starts_with("lost ps/0 (fake:1)")) << lost_[0];
}

TEST_F(PsControlLinkTest, AClosedConnectionIsMadeAgain) {
  open();
  kill(0);
  loop_.live(seconds(5));
  EXPECT_TRUE(lost_.empty()) << lost_[0];
  ASSERT_EQ(broken_.size(), 1u);
  EXPECT_TRUE(broken_[0].starts_with("lost ps/0 (fake:1)")) << broken_[0];
  EXPECT_EQ(ps_[0].hellos, (std::vector<uint32_t>{0, 1})) << "which one it is";
  EXPECT_GE(ps_[0].heartbeats, 5) << "they go on";
}

TEST_F(PsControlLinkTest, APsThatIsSilentForHalfALeaseIsConnectedToAnew) {
  open();
  ps_[0].answers_heartbeats = false;
  loop_.live(seconds(8));
  ASSERT_EQ(broken_.size(), 1u);
  EXPECT_TRUE(lost_.empty()) << lost_[0];
  EXPECT_EQ(ps_[0].hellos.size(), 2u);
}

TEST_F(PsControlLinkTest, APsThatStaysAwayIsLostInTimeAndByName) {
  open();
  away_ = true;
  kill(0);
  loop_.live(seconds(59));
  EXPECT_TRUE(lost_.empty()) << lost_[0];
  loop_.live(seconds(3));
  ASSERT_EQ(lost_.size(), 1u);
  EXPECT_EQ(lost_[0],
            "lost ps/0 (fake:1): it closed the connection; waited 60 s for ps/0 (fake:1) to answer "
            "the hello");
}

// A launcher may hold the socket of a process that has ended.
TEST_F(PsControlLinkTest, APsThatConnectsButAnswersNoHelloIsLost) {
  open();
  ps_[0].answers_hellos = false;
  kill(0);
  loop_.live(seconds(62));
  ASSERT_EQ(lost_.size(), 1u);
  EXPECT_NE(lost_[0].find("to answer the hello"), std::string::npos) << lost_[0];
  EXPECT_GT(ps_[0].hellos.size(), 3u) << "each is given up after a lease";
}

TEST_F(PsControlLinkTest, WhatIsNotAnsweredIsSaidAgainOnTheNextConnection) {
  PsControlLink& link = open();
  const arena::ModelDeclaration declared = model();
  const std::vector<std::pair<std::string, std::function<kj::Promise<void>()>>> calls = {
      {"declare", [&] { return link.declare(declared); }},
      {"waitInitialised", [&] { return link.waitInitialised(); }},
      {"barrier start", [&] { return link.barrier("start", seconds(20)); }},
      {"finish", [&] { return link.finish(); }}};
  for (const auto& [name, call] : calls) {
    ps_[0].calls.clear();
    ps_[0].hangs = name;
    auto waiting = call();
    loop_.settle();
    ASSERT_EQ(ps_[0].calls, std::vector<std::string>{name});
    ps_[0].hangs.reset();
    kill(0);
    loop_.live(milliseconds(200));  // a link that has just healed isn't mended at once
    get(kj::mv(waiting));
    EXPECT_EQ(ps_[0].calls, (std::vector<std::string>{name, name}));
  }
  EXPECT_TRUE(lost_.empty()) << lost_[0];
}

TEST_F(PsControlLinkTest, ACallWhileThePsIsAwayIsMadeWhenItIsBack) {
  PsControlLink& link = open();
  ps_[0].answers_hellos = false;
  kill(0);
  auto waiting = link.barrier("start", seconds(20));
  loop_.live(seconds(5));
  EXPECT_FALSE(waiting.poll(loop_.waitScope()));
  ps_[0].answers_hellos = true;
  loop_.live(seconds(6));  // the hello under way is given up after a lease
  get(kj::mv(waiting));
  EXPECT_EQ(ps_[0].calls, std::vector<std::string>{"barrier start"});
}

TEST_F(PsControlLinkTest, AnotherProcessOfThePsIsToldWhatItMissed) {
  PsControlLink& link = open();
  get(link.declare(model()));
  get(link.barrier("start", seconds(20)));
  ps_[0].hangs = "waitInitialised";
  auto waiting = link.waitInitialised();
  loop_.settle();
  ps_[0].hangs.reset();
  ps_[0].calls.clear();
  ++ps_[0].incarnation;
  kill(0);
  loop_.live(seconds(1));
  EXPECT_EQ(replaced_, 1);
  get(kj::mv(waiting));
  EXPECT_EQ(ps_[0].calls, (std::vector<std::string>{"declare", "passed before: barrier start",
                                                    "waitInitialised"}));
  kill(0);
  loop_.live(seconds(1));
  EXPECT_EQ(replaced_, 1) << "the same process";
  EXPECT_EQ(ps_[0].calls.size(), 3u);
}

// The connection breaks again during the declaration.
TEST_F(PsControlLinkTest, AReplacedPsIsToldOfUntilItKnowsTheModel) {
  PsControlLink& link = open();
  get(link.declare(model()));
  ps_[0].hangs = "declare";
  ++ps_[0].incarnation;
  kill(0);
  loop_.live(seconds(1));
  EXPECT_EQ(replaced_, 0);
  ps_[0].hangs.reset();
  kill(0);
  loop_.live(seconds(1));
  EXPECT_EQ(replaced_, 1);
  EXPECT_TRUE(lost_.empty()) << lost_[0];
}

TEST_F(PsControlLinkTest, APsThatWasStartedAgainBeforeItWasToldAnythingHasLostNothing) {
  open();
  ++ps_[0].incarnation;
  kill(0);
  loop_.live(seconds(1));
  EXPECT_EQ(replaced_, 0);
  EXPECT_TRUE(lost_.empty()) << lost_[0];
}

TEST_F(PsControlLinkTest, WhyAPsEndsIsFinal) {
  open();
  loop_.settle();
  (*ps_[0].end_awaited)->reject(net::toKj(Error(ErrorCode::kUnavailable, "worker/1 is missing")));
  loop_.settle();
  kill(0);
  loop_.live(seconds(1));
  EXPECT_EQ(lost_, std::vector<std::string>{"worker/1 is missing"});
  EXPECT_EQ(ps_[0].hellos.size(), 1u);
}

TEST_F(PsControlLinkTest, ARefusedHelloIsFinal) {
  open();
  ps_[0].refused_hello = Error(ErrorCode::kUnavailable, "fenced: worker/0 was declared lost");
  kill(0);
  loop_.live(seconds(1));
  EXPECT_EQ(lost_, std::vector<std::string>{"fenced: worker/0 was declared lost"});
}

TEST_F(PsControlLinkTest, AnEarlierProcessOfThePsIsNotTakenForTheOneThatWasMet) {
  ps_[0].incarnation = Incarnation::ofNow(2).value;
  open();
  ps_[0].incarnation = Incarnation::ofNow(1).value;
  kill(0);
  loop_.live(seconds(5));
  EXPECT_TRUE(lost_.empty()) << lost_[0];
  EXPECT_GT(ps_[0].hellos.size(), 3u) << "it is tried again";
  ps_[0].incarnation = Incarnation::ofNow(3).value;
  loop_.live(seconds(1));
  const size_t said = ps_[0].hellos.size();
  loop_.live(seconds(5));
  EXPECT_EQ(ps_[0].hellos.size(), said);
}

TEST_F(PsControlLinkTest, AfterTheEndAClosedConnectionIsNothing) {
  PsControlLink& link = open();
  get(link.finish());
  kill(0);
  loop_.live(seconds(20));
  EXPECT_TRUE(lost_.empty()) << lost_[0];
}

TEST_F(PsControlLinkTest, WhatAHeartbeatBringsIsToldWhenItChanges) {
  open();
  ps_[0].awaited = "worker/1";
  loop_.live(seconds(3));
  ps_[0].awaited = "";
  ps_[0].stop_wanted = true;
  loop_.live(seconds(3));
  EXPECT_EQ(awaited_, (std::vector<std::string>{"worker/1", ""}));
  EXPECT_EQ(stops_wanted_, 1);
}

TEST_F(PsControlLinkTest, AModelBeyondOneMessageIsRefusedBeforeItIsSent) {
  PsControlLink& link = open();
  arena::ModelDeclaration large = model();
  for (int i = 0; i < 20; ++i) large.settings.push_back({"setting", std::string(1 << 20, 'x')});
  const Error error = errorOf(kj::evalNow([&] { return link.declare(large); }));
  EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
  EXPECT_TRUE(error.message().starts_with("the model's description takes 20.0 MiB"))
      << error.message();
  EXPECT_TRUE(ps_[0].calls.empty());
}

TEST_F(PsControlLinkTest, ACallThatIsNotAnsweredEndsByItsDeadlineAndName) {
  PsControlLink& link = open();
  ps_[0].hangs = "barrier start";
  std::optional<Error> error;
  auto waiting = link.barrier("start", seconds(20)).eagerlyEvaluate([&](kj::Exception&& e) {
    error = net::toError(e);
  });
  loop_.live(seconds(24));
  EXPECT_FALSE(error) << error->message();
  loop_.live(seconds(2));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message(),
            "waited 25 s for the other workers at the barrier 'start' of ps/0 (fake:1)");
}

// The reply was lost with the connection, and the ps has ended because all workers had finished.
TEST_F(PsControlLinkTest, APsThatIsGoneNeedNotLetAWorkerGoThatHasFinished) {
  PsControlLink& link = open();
  ps_[0].hangs = "finish";
  auto waiting = finish(link);
  loop_.live(seconds(1));
  away_ = true;
  kill(0);
  loop_.live(seconds(8));
  EXPECT_EQ(end_, "waits") << "it may come back, and answer";
  loop_.live(seconds(2));
  EXPECT_EQ(end_, "finished");
}

TEST_F(PsControlLinkTest, NorWhereNobodyWaitsForItsReturn) {
  for (const double rejoin : {0.0, 3.0}) {
    SCOPED_TRACE(rejoin);
    options_.link.timeouts.rejoin_seconds = rejoin;
    away_ = false;
    PsControlLink& link = open();
    ps_[0].hangs = "finish";
    auto waiting = finish(link);
    loop_.live(seconds(1));
    away_ = true;
    kill(0);
    loop_.live(seconds(5));
    EXPECT_EQ(end_, "finished");
    EXPECT_TRUE(lost_.empty()) << lost_[0];
  }
}

TEST_F(PsControlLinkTest, APsThatIsThereLetsGoOrTheWorkerFails) {
  PsControlLink& link = open();
  ps_[0].hangs = "finish";
  auto waiting = finish(link);
  loop_.live(seconds(11));
  EXPECT_EQ(end_, "waited 10 s for ps/0 (fake:1) to confirm the end of this task");
}

TEST_F(PsControlLinkTest, AFailureIsToldWithAReasonOfBoundedLength) {
  PsControlLink& link = open();
  get(link.fail(Error(ErrorCode::kTrainingFailed, std::string(100'000, 'x')), FailureOf::kJob));
  EXPECT_EQ(ps_[0].failure.size(), 16384u);
  EXPECT_FALSE(ps_[0].leaves);
}

TEST_F(PsControlLinkTest, AWorkerThatLostAPeerLeavesTheJobToTheOthers) {
  PsControlLink& link = open();
  const Error lost(ErrorCode::kUnavailable, "lost ps/1");
  get(link.fail(lost, failureOf(lost)));
  EXPECT_EQ(ps_[0].failure, "lost ps/1");
  EXPECT_TRUE(ps_[0].leaves);
}

TEST(FailureOf, WhatAnotherProcessWouldMeetAgainIsTheJobs) {
  for (const ErrorCode code : {ErrorCode::kBadConfig, ErrorCode::kBadData, ErrorCode::kCannotWrite,
                               ErrorCode::kTrainingFailed, ErrorCode::kInternal})
    EXPECT_EQ(failureOf(Error(code, "x")), FailureOf::kJob) << errorCodeName(code);
  for (const ErrorCode code :
       {ErrorCode::kUnavailable, ErrorCode::kDeadline, ErrorCode::kPermission})
    EXPECT_EQ(failureOf(Error(code, "x")), FailureOf::kWorker) << errorCodeName(code);
}

TEST_F(PsControlLinkTest, AFailureBeforeTheHelloIsToldToNobody) {
  link_ = std::make_unique<PsControlLink>(loop_, options_.link, 0, options_.ps[0],
                                          PsControlLink::Events{[](const Error&) {}});
  get(link_->fail(Error(ErrorCode::kTrainingFailed, "diverged"), FailureOf::kJob));
  EXPECT_TRUE(ps_[0].calls.empty());
}

}  // namespace
}  // namespace dtf::wire
