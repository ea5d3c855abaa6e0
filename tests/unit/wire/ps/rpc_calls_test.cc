#include "common/wire/ps/rpc_calls.h"

#include <algorithm>

#include "common/replication/epoch.h"
#include "tests/unit/wire/fake_cluster.h"

namespace dtf::wire::fake {
namespace {

using std::chrono::seconds;

// The control connections of two ps; ps/1 is absent unless a test starts it.
class ControlCallsTest : public FakeCluster {
 protected:
  ControlCallsTest() : FakeCluster(2) {
    loop_.on_connect = [this](uint16_t port) -> kj::Promise<kj::Own<net::MessageStream>> {
      if (port != 1) return kj::NEVER_DONE;
      return serve(port);
    };
  }

  bool asked(uint32_t ps_task, const std::string& call) const {
    const auto& calls = ps_[ps_task].calls;
    return std::find(calls.begin(), calls.end(), call) != calls.end();
  }
  std::unique_ptr<ControlCalls> calls() {
    return std::make_unique<ControlCalls>(loop_, options_,
                                          ControlCalls::Events{[](const Error&) {}});
  }
};

TEST_F(ControlCallsTest, TheFirstErrorEndsTheWaitForAll) {
  ps_[0].refused_hello = Error(ErrorCode::kUnavailable, "this ps is about to end");
  const auto calls = this->calls();
  const Error error = errorOf(calls->opened());  // the client doesn't wait for ps/1
  EXPECT_NE(error.message().find("about to end"), std::string::npos) << error.message();
}

// The other ps received the end first, and had left when this worker started.
TEST_F(ControlCallsTest, AJobThatWasEndedIsNotWaitedForAtThePsThatHasLeft) {
  ps_[0].failed_heartbeats = jobEndedBy(1, ErrorCode::kUnavailable, "no such file");
  const auto calls = this->calls();
  loop_.live(seconds(1));
  const Error error = errorOf(calls->opened());  // the client doesn't wait for ps/1
  EXPECT_EQ(error.message(), "the job was ended by worker/1: no such file");
  EXPECT_TRUE(error.has(ErrorTrait::kJobEnded)) << "worker/1 has told the others";
}

TEST_F(ControlCallsTest, WhatAPsAnswersIsFinalWhateverItsCode) {
  ps_[0].refused_hello = Error(ErrorCode::kUnavailable, "this ps is about to end");
  const auto calls = this->calls();
  loop_.live(seconds(5));
  EXPECT_EQ(served_[1].size(), 1u) << "an answer is no broken connection: nothing is tried again";
}

TEST_F(ControlCallsTest, AWishToStopWaitsForPs0) {
  for (FakePs& ps : ps_) ps.stop_wanted = true;
  auto arrival = kj::newPromiseAndFulfiller<kj::Own<net::MessageStream>>();
  loop_.on_connect = [&](uint16_t port) -> kj::Promise<kj::Own<net::MessageStream>> {
    if (port == 1) return kj::mv(arrival.promise);
    return serve(port);
  };
  const auto calls = this->calls();
  loop_.live(seconds(3));
  EXPECT_FALSE(asked(0, "requestStop")) << "it is not there yet";
  arrival.fulfiller->fulfill(serve(1));
  loop_.live(seconds(1));
  EXPECT_TRUE(asked(0, "requestStop"));
  EXPECT_FALSE(asked(1, "requestStop"));
}

// Another worker may have passed the request on before this ps's next heartbeat.
TEST_F(ControlCallsTest, WhoWasToldToEndIsAskedOfEveryPs) {
  loop_.on_connect = [this](uint16_t port) { return serve(port); };
  const auto calls = this->calls();
  get(calls->opened());
  ps_[1].stop_wanted = true;
  EXPECT_EQ(get(calls->toldToEnd()), std::set<uint32_t>{1});
  ps_[0].stop_wanted = true;
  EXPECT_EQ(get(calls->toldToEnd()), (std::set<uint32_t>{0, 1}));
}

// The job fails while its ps no longer accept bulk connections: each attempt breaks, and the
// control connection has the reason.
TEST_F(ControlCallsTest, TheReasonEndsAnOpeningThatIsTriedAgain) {
  int refused = 0;
  loop_.on_connect = [&](uint16_t port) -> kj::Promise<kj::Own<net::MessageStream>> {
    if (loop_.connecting != net::ConnectionKind::kBulk) return serve(port);
    ++refused;
    auto pipe = kj::newTwoWayPipe();  // its other end closes
    return net::wrapStream(kj::mv(pipe.ends[1]));
  };
  DataCalls data(loop_, options_);
  ControlCalls control(loop_, options_, {[&](const Error& error) { data.fail(error); }});
  get(control.opened());
  auto opening = data.open(model()).eagerlyEvaluate(nullptr);
  loop_.live(seconds(1));
  EXPECT_FALSE(opening.poll(loop_.waitScope())) << "broken connections are made anew";
  EXPECT_GT(refused, 2);
  for (FakePs& ps : ps_) ps.failed_heartbeats = Error(ErrorCode::kBadConfig, "the reason");
  loop_.live(seconds(2));
  EXPECT_EQ(errorOf(kj::mv(opening)).message(), "the reason");
}

TEST_F(ControlCallsTest, AnotherPs0IsAskedToStopTheJobAgain) {
  std::vector<uint32_t> replaced;
  options_.on_replaced = [&](uint32_t ps_task) { replaced.push_back(ps_task); };
  loop_.on_connect = [this](uint16_t port) { return serve(port); };
  const auto calls = this->calls();
  get(calls->opened());
  get(calls->declare(model()));
  calls->requestStop([](const Error& error) { ADD_FAILURE() << error.message(); });
  loop_.settle();
  for (uint32_t ps = 0; ps < 2; ++ps) {
    ps_[ps].calls.clear();
    ++ps_[ps].incarnation;
    kill(ps);
    loop_.live(seconds(1));
  }
  EXPECT_EQ(replaced, (std::vector<uint32_t>{0, 1}));
  EXPECT_TRUE(asked(0, "requestStop"));
  EXPECT_FALSE(asked(1, "requestStop"));
}

// Both halves of a worker's client, joined as in RpcExchangeClient.
class DataCallsTest : public FakeCluster {
 protected:
  DataCallsTest() : FakeCluster(2) {
    options_.on_waiting = [this](const std::string& what, Duration) { waiting_ = what; };
    options_.link.timeouts.step_seconds = 5;
    data_ = std::make_unique<DataCalls>(loop_, options_, [this](uint32_t ps, uint64_t question) {
      ++asked_;
      control_->hear(ps, [this, ps, question] { data_->heard(ps, question); });
    });
    ControlCalls::Events events;
    events.on_lost = [this](const Error& error) { data_->fail(error); };
    events.on_broken = [this](uint32_t ps, const Error& why) { data_->onBroken(ps, why); };
    events.on_awaited = [this](uint32_t ps, const Awaited& whom) { data_->setAwaited(ps, whom); };
    control_ = std::make_unique<ControlCalls>(loop_, options_, std::move(events));
    get(control_->opened());
    get(control_->declare(model()));
    get(data_->open(model()));
  }
  ~DataCallsTest() noexcept override { data_ = nullptr; }

  int asked_ = 0;
  std::string waiting_;
  std::unique_ptr<ControlCalls> control_;
  std::unique_ptr<DataCalls> data_;
};

TEST_F(DataCallsTest, AStepGoesOnWhenThePsIsBack) {
  ps_[1].hangs = "exchange";
  auto step = data_->exchange(0, 0, 0).eagerlyEvaluate(nullptr);
  loop_.live(seconds(1));
  ps_[1].answers_hellos = false;
  kill(1);
  loop_.live(seconds(8));
  EXPECT_FALSE(step.poll(loop_.waitScope())) << "its deadline does not run meanwhile";
  EXPECT_TRUE(waiting_.starts_with("ps/1 to come back (lost ")) << waiting_;
  EXPECT_GT(asked_, 0);
  ps_[1].answers_hellos = true;
  ps_[1].hangs.reset();
  loop_.live(seconds(6));
  EXPECT_EQ(get(kj::mv(step)).next_step, 1u);
  EXPECT_EQ(ps_[0].step, 1u);
  EXPECT_EQ(ps_[1].step, 1u) << "taken once";
}

// Of two ps the one that needed more for sending and receiving counts.
TEST_F(DataCallsTest, AnExchangeWaitsWhileNothingMoves) {
  uint64_t step = 0;
  const auto exchange = [&](Duration waited_on_the_last) {
    const auto answer = [&](Duration waited) {
      return replication::StepState{
          .global_step = step + 1, .next_step = step + 1, .waited = waited};
    };
    ps_[0].states.push_back(answer(std::chrono::milliseconds(1)));
    ps_[1].states.push_back(answer(waited_on_the_last));
    ps_[1].hangs = "exchange";
    auto pending = data_->exchange(step++, 0, 0).eagerlyEvaluate(nullptr);
    loop_.live(seconds(2));
    ps_[1].hangs.reset();
    kill(1);  // the repeated call gets a reply
    loop_.live(seconds(1));
    return get(kj::mv(pending)).waited;
  };
  EXPECT_EQ(exchange(std::chrono::milliseconds(1500)), std::chrono::milliseconds(1500));
  EXPECT_GE(exchange(Duration{0}), seconds(2)) << "that ps doesn't measure it: all counts";
}

// A restarted ps reports that it waits for its values, as long as the chief reads them.
TEST_F(DataCallsTest, WhoeverPullsWaitsForThePsThatGetsItsValuesBack) {
  for (const std::string call : {"pull", "averages"}) {
    SCOPED_TRACE(call);
    ps_[1].hangs = call;
    ps_[1].awaits_return = true;
    const auto ask = [&] {
      return call == "pull" ? data_->pull().ignoreResult() : data_->pullAside(false);
    };
    auto waits = ask().eagerlyEvaluate(nullptr);
    loop_.live(seconds(60));
    EXPECT_FALSE(waits.poll(loop_.waitScope()));
    EXPECT_EQ(waiting_, "ps/1 to answer the step");
    ps_[1].hangs.reset();
    kill(1);  // the repeated call gets a reply
    loop_.live(seconds(1));
    get(kj::mv(waits));
  }
}

TEST_F(DataCallsTest, APullThatNobodyKeepsFromItsAnswerHasADeadline) {
  ps_[1].hangs = "pull";
  auto waits = data_->pull().eagerlyEvaluate(nullptr);
  loop_.live(seconds(9));
  EXPECT_FALSE(waits.poll(loop_.waitScope()));
  loop_.live(seconds(5));
  EXPECT_EQ(errorOf(kj::mv(waits)).code(), ErrorCode::kDeadline);
}

// A chief that has saved nothing goes on to its last evaluation.
TEST_F(DataCallsTest, CallsAfterTheLossOfAPsFailWithItsReason) {
  ps_[1].hangs = "pull";
  auto waits = data_->pull().eagerlyEvaluate(nullptr);
  loop_.live(seconds(1));
  data_->fail(Error(ErrorCode::kUnavailable, "ps/1 is lost"));
  EXPECT_EQ(errorOf(kj::mv(waits)).message(), "ps/1 is lost");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(errorOf(data_->pull()).message(), "ps/1 is lost");
    EXPECT_EQ(errorOf(data_->pullAside(false)).message(), "ps/1 is lost");
    EXPECT_EQ(errorOf(data_->exchange(0, 0, 0)).message(), "ps/1 is lost");
  }
}

// ps/0 waits for a gradient from a worker that waits for ps/1.
TEST_F(DataCallsTest, NoDeadlineRunsWhileAnotherPsWaitsForItsValues) {
  ps_[0].hangs = "exchange";
  ps_[1].awaits_return = true;
  auto step = data_->exchange(0, 0, 0).eagerlyEvaluate(nullptr);
  loop_.live(seconds(60));
  EXPECT_FALSE(step.poll(loop_.waitScope()));
  ps_[1].awaits_return = false;
  loop_.live(seconds(15));
  EXPECT_EQ(errorOf(kj::mv(step)).code(), ErrorCode::kDeadline);
}

TEST_F(DataCallsTest, APsThatHasNotGoneBackYetIsAskedUntilItHas) {
  constexpr uint64_t kBefore = replication::nextEpoch(0, 1),
                     kAfter = replication::nextEpoch(kBefore, 1);
  for (FakePs& ps : ps_) ps.epoch = kBefore;
  EXPECT_EQ(get(data_->pull()).epoch, kBefore);
  ps_[0].states.push_back({.outcome = replication::Outcome::kWentBack,
                           .global_step = 0,
                           .next_step = 0,
                           .epoch = kAfter});
  ps_[1].states.push_back({.global_step = 1, .next_step = 1, .epoch = kBefore});
  ps_[1].epoch = kAfter;
  const replication::StepState state = get(data_->exchange(0, 0, 0));
  EXPECT_EQ(state.outcome, replication::Outcome::kWentBack);
  EXPECT_EQ(state.epoch, kAfter);
  EXPECT_EQ(ps_[1].epochs, (std::vector<uint64_t>{0, kAfter}));
  EXPECT_EQ(ps_[0].epochs, std::vector<uint64_t>{0});
}

}  // namespace
}  // namespace dtf::wire::fake
