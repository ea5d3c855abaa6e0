#include "common/wire/rpc_calls.h"

#include <algorithm>

#include "tests/unit/wire/fake_cluster.h"

namespace dtf::wire::fake {
namespace {

using std::chrono::seconds;

// The control connections of two ps; ps/1 is not there unless a test says so.
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
  const Error error = errorOf(calls->opened());  // ps/1 is not waited for
  EXPECT_NE(error.message().find("about to end"), std::string::npos) << error.message();
}

// The other ps was told first, and was gone when this worker started.
TEST_F(ControlCallsTest, AJobThatWasEndedIsNotWaitedForAtThePsThatHasLeft) {
  ps_[0].failed_heartbeats = Error(ErrorCode::kUnavailable, jobFailedText(1, "no such file"));
  const auto calls = this->calls();
  loop_.live(seconds(1));
  const Error error = errorOf(calls->opened());  // ps/1 is not waited for
  EXPECT_EQ(error.message(), "the job was ended by worker/1: no such file");
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

// A job that fails while its ps no longer take bulk connections: each attempt breaks, and the control
// connection says why.
TEST_F(ControlCallsTest, TheReasonEndsAnOpeningThatIsTriedAgain) {
  int refused = 0;
  loop_.on_connect = [&](uint16_t port) -> kj::Promise<kj::Own<net::MessageStream>> {
    if (loop_.connecting != net::ConnectionKind::kBulk) return serve(port);
    ++refused;
    auto pipe = kj::newTwoWayPipe();  // whose other end closes
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

}  // namespace
}  // namespace dtf::wire::fake
