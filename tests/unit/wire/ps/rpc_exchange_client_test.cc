// The blocking client on its two loops. tests/conformance covers its calls to several ps and their
// agreement; rpc_calls_test.cc covers failures of calls.

#include "common/wire/ps/rpc_exchange_client.h"
#include "common/replication/epoch.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/unit/wire/fake_ps_host.h"

namespace dtf::wire {
namespace {

using fake::FakePs;
using fake::FakePsHost;
using fake::kElements;

template <class Fn>
Error errorOf(Fn fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::kInternal, "");
}

TEST(RpcExchangeClientTest, AJobMakesItsCallsInTheirOrder) {
  FakePsHost host;
  RpcExchangeClient client(host.clientOptions());
  client.declare(FakePsHost::model());
  const std::vector<float> values(kElements);
  client.initialise(std::vector<std::span<const float>>{values}, replication::kFirstEpoch);
  client.waitInitialised();
  client.barrier("start");
  client.pull();
  client.gradients(0)[3] = 2;
  host.with([](FakePs& ps) { ps.parameters[3] = 5; });
  EXPECT_EQ(pushPull(client, 0, 0, 0).next_step, 1u);
  EXPECT_EQ(client.view(exchange::Values::kParameters, 0)[3], 5);
  client.leave();
  const auto [calls, gradient] =
      host.with([](FakePs& ps) { return std::pair(ps.calls, ps.gradient); });
  EXPECT_EQ(calls, (std::vector<std::string>{"declare", "initialise", "waitInitialised",
                                             "barrier start", "pull", "exchange", "finish"}));
  EXPECT_EQ(gradient.at(3), 2);
}

TEST(RpcExchangeClientTest, WhatAPsRefusesIsThrownWithItsCode) {
  FakePsHost host;
  host.with([](FakePs& ps) { ps.refusal = Error(ErrorCode::kBadConfig, "seed is 7 here"); });
  RpcExchangeClient client(host.clientOptions());
  const Error error = errorOf([&] { client.declare(FakePsHost::model()); });
  EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
  EXPECT_EQ(error.message(), "seed is 7 here");
}

// An earlier ps would weigh the gradient of a short batch like a whole one's.
TEST(RpcExchangeClientTest, AnEarlierPsIsRefusedForEpochs) {
  FakePsHost host;
  host.with([](FakePs& ps) { ps.weighs_epochs = false; });
  arena::ModelDeclaration epochs = FakePsHost::model();
  epochs.epochs = {.examples = 7, .batch_size = 2};
  RpcExchangeClient client(host.clientOptions());
  const Error error = errorOf([&] { client.declare(epochs); });
  EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
  EXPECT_NE(error.message().find("upgrade the ps first, or give the job 'steps'"),
            std::string::npos)
      << error.message();
  RpcExchangeClient of_steps(host.clientOptions());
  of_steps.declare(FakePsHost::model());
  host.with([](FakePs& ps) { ps.weighs_epochs = true; });
  RpcExchangeClient of_epochs(host.clientOptions());
  of_epochs.declare(epochs);
}

TEST(RpcExchangeClientTest, ALostPsEndsTheCallThatWaits) {
  FakePsHost host;
  host.with([](FakePs& ps) { ps.hangs = "exchange"; });
  RpcClientOptions options = host.clientOptions();
  options.link.timeouts.rejoin_seconds = 0.5;
  RpcExchangeClient client(options);
  client.declare(FakePsHost::model());
  std::future<void> asked = host.asked("exchange");
  std::future<Error> ended =
      std::async(std::launch::async, [&] { return errorOf([&] { pushPull(client, 0, 0, 0); }); });
  asked.wait();
  host.kill();
  const Error error = ended.get();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(error.message().starts_with("lost ps/0 (127.0.0.1:")) << error.message();
}

TEST(RpcExchangeClientTest, WhyThisWorkerFailsIsToldFromAnyThread) {
  FakePsHost host;
  RpcExchangeClient client(host.clientOptions());
  client.declare(FakePsHost::model());
  std::async(std::launch::async, [&] {
    client.fail(Error(ErrorCode::kTrainingFailed, "the loss is nan"), FailureOf::kJob,
                std::chrono::seconds(5));
  }).get();
  EXPECT_EQ(host.with([](FakePs& ps) { return ps.failure; }), "the loss is nan");
}

TEST(RpcExchangeClientTest, ARefusedWishToStopIsTold) {
  FakePsHost host;
  RpcExchangeClient client(host.clientOptions());
  client.declare(FakePsHost::model());
  host.with([](FakePs& ps) { ps.refusal = Error(ErrorCode::kPermission, "not the chief"); });
  std::promise<std::string> refused;
  client.requestStop([&](const Error& error) { refused.set_value(error.message()); });
  EXPECT_EQ(refused.get_future().get(), "not the chief");
}

TEST(RpcExchangeClientTest, ItEndsWhileNoPsIsThere) {
  RpcClientOptions options;
  {
    FakePsHost host;
    options = host.clientOptions();
  }
  RpcExchangeClient client(options);  // its control loop tries to connect
}

}  // namespace
}  // namespace dtf::wire
