#include "common/wire/rpc_calls.h"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include "common/net/error_bridge.h"
#include "common/wire/ps.capnp.h"
#include "tests/support/still_loop.h"

namespace dtf::wire {
namespace {

using std::chrono::seconds;

// A ps that has its own idea of the job.
class RefusingGate final : public schema::PsGate::Server {
  kj::Promise<void> hello(HelloContext) override {
    net::throwAsKj(Error(ErrorCode::kUnavailable, "this ps is about to end"));
  }
};

// A ps that was told to end.
class StoppingSession final : public schema::PsControl::Server {
 public:
  explicit StoppingSession(int& asked) : asked_(asked) {}

 private:
  kj::Promise<void> heartbeat(HeartbeatContext context) override {
    context.getResults().setStopWanted(true);
    return kj::READY_NOW;
  }
  kj::Promise<void> requestStop(RequestStopContext) override {
    ++asked_;
    return kj::READY_NOW;
  }
  int& asked_;
};

class StoppingGate final : public schema::PsGate::Server {
 public:
  explicit StoppingGate(int& asked) : asked_(asked) {}

 private:
  kj::Promise<void> hello(HelloContext context) override {
    context.getResults().setControl(kj::heap<StoppingSession>(asked_));
    return kj::READY_NOW;
  }
  int& asked_;
};

// A ps of a job that another worker has ended.
class EndedSession final : public schema::PsControl::Server {
  kj::Promise<void> heartbeat(HeartbeatContext) override {
    net::throwAsKj(Error(ErrorCode::kUnavailable, jobFailedText(1, "no such file")));
  }
};

class EndedGate final : public schema::PsGate::Server {
  kj::Promise<void> hello(HelloContext context) override {
    context.getResults().setControl(kj::heap<EndedSession>());
    return kj::READY_NOW;
  }
};

// ps/0 on a pipe; ps/1 is not there, ever.
class ControlCallsTest : public ::testing::Test {
 protected:
  ControlCallsTest() {
    loop_.on_connect = [this](uint16_t port) -> kj::Promise<kj::Own<net::MessageStream>> {
      if (port != 1) return kj::NEVER_DONE;
      ++connections_;
      auto pipe = kj::newTwoWayPipe();
      servers_.push_back(kj::heap<net::RpcConnection>(
          net::wrapStream(kj::mv(pipe.ends[0])), [this](net::RpcConnection&) { return gate_(); },
          net::RpcOptions{}));
      return net::wrapStream(kj::mv(pipe.ends[1]));
    };
    cluster::JobSpec job;
    job.cluster.worker.resize(1);
    options_.link = linkOptions(job, {JobKind::kWorker, 0}, Incarnation{1});
    options_.ps = {{"here", 1}, {"nowhere", 2}};
  }
  ~ControlCallsTest() noexcept override {}

  testing::StillLoop loop_;
  std::function<capnp::Capability::Client()> gate_ = [] { return kj::heap<RefusingGate>(); };
  RpcClientOptions options_;
  std::vector<kj::Own<net::RpcConnection>> servers_;
  int connections_ = 0;
};

TEST_F(ControlCallsTest, TheFirstErrorEndsTheWaitForAll) {
  ControlCalls calls(loop_, options_, [](const Error&) {});
  std::optional<Error> error;
  auto opened = calls.opened().eagerlyEvaluate(
      [&](kj::Exception&& exception) { error = net::toError(exception); });
  loop_.settle();
  ASSERT_TRUE(error.has_value()) << "ps/1 is not waited for";
  EXPECT_NE(error->message().find("about to end"), std::string::npos) << error->message();
}

// The other ps was told first, and was gone when this worker started.
TEST_F(ControlCallsTest, AJobThatWasEndedIsNotWaitedForAtThePsThatHasLeft) {
  gate_ = [] { return kj::heap<EndedGate>(); };
  ControlCalls calls(loop_, options_, [](const Error&) {});
  std::optional<Error> error;
  auto opened = calls.opened().eagerlyEvaluate(
      [&](kj::Exception&& exception) { error = net::toError(exception); });
  loop_.live(seconds(1));
  ASSERT_TRUE(error.has_value()) << "ps/1 is waited for";
  EXPECT_EQ(error->message(), "the job was ended by worker/1: no such file");
}

TEST_F(ControlCallsTest, WhatAPsAnswersIsFinalWhateverItsCode) {
  ControlCalls calls(loop_, options_, [](const Error&) {});
  auto opened = calls.opened().eagerlyEvaluate([](kj::Exception&&) {});
  loop_.live(seconds(5));
  EXPECT_EQ(connections_, 1) << "an answer is no broken connection: nothing is tried again";
}

TEST_F(ControlCallsTest, AWishToStopWaitsForPs0) {
  int asked_of_ps0 = 0, asked_of_ps1 = 0;
  const auto serve = [&](int& asked) {
    auto pipe = kj::newTwoWayPipe();
    servers_.push_back(kj::heap<net::RpcConnection>(
        net::wrapStream(kj::mv(pipe.ends[0])),
        [&](net::RpcConnection&) { return kj::heap<StoppingGate>(asked); }, net::RpcOptions{}));
    return net::wrapStream(kj::mv(pipe.ends[1]));
  };
  auto arrival = kj::newPromiseAndFulfiller<kj::Own<net::MessageStream>>();
  loop_.on_connect = [&](uint16_t port) -> kj::Promise<kj::Own<net::MessageStream>> {
    if (port == 1) return kj::mv(arrival.promise);
    return serve(asked_of_ps1);
  };
  ControlCalls calls(loop_, options_, [](const Error&) {});
  loop_.live(seconds(3));
  EXPECT_EQ(asked_of_ps0, 0) << "it is not there yet";
  arrival.fulfiller->fulfill(serve(asked_of_ps0));
  loop_.live(seconds(1));
  EXPECT_GE(asked_of_ps0, 1);
  EXPECT_EQ(asked_of_ps1, 0);
}

}  // namespace
}  // namespace dtf::wire
