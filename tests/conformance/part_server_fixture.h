#pragma once

// A task that serves, on a real socket. Its session's client and another task of the session send
// it messages one by one.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/error.h"
#include "common/base/json.h"
#include "common/net/error_bridge.h"
#include "common/wire/model_codec.h"
#include "common/wire/session/part_codec.h"
#include "common/wire/session/session_token.h"
#include "common/wire/session/tensor_codec.h"
#include "tests/conformance/session_harness.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::serving {

using engine::TaskPart;
using engine::testing::RawClient;
using engine::testing::SessionHarness;
using graph::Output;
using graph::testing::errorText;

inline constexpr TaskId kHere{JobKind::kWorker, 1}, kThere{JobKind::kWorker, 0};
inline constexpr uint64_t kPlan = 1;
inline constexpr wire::SessionToken kSession{.number = 0xfeed, .secret = {0x5ec7e7, 1}};
inline constexpr Incarnation kPeer{77};

// worker/1's part of a plan: the tensor from worker/0 over edge 0, named "act", times ten.
inline std::shared_ptr<TaskPart> receivingPart() {
  auto part = std::make_shared<TaskPart>(TaskPart{.task = kHere,
                                                  .graph = graph::Graph(graph::standardOps()),
                                                  .fetches = {},
                                                  .feeds = {},
                                                  .folded = {},
                                                  .edges = {},
                                                  .edges_total = 1});
  graph::Builder b(part->graph);
  const auto device = b.deviceScope(graph::fullDevice(kHere).str());
  const Output received{b.node(
      "_Recv", {}, {{"key", std::string("k")}, {"dtype", DType::kFloat32}, {"shape", Shape{2}}},
      "received")};
  const Output acted{b.node("Tanh", {received}, {}, "act")};
  part->fetches = {b.scale(acted, 10)};
  part->edges = {{received.node, 0, kThere}};
  return part;
}

// Returns the promise's error; empty when it has none.
template <class Action>
std::string failureOf(Action action) {
  return errorText([&] {
    try {
      action();
    } catch (const kj::Exception& exception) {
      throw net::toError(exception);
    }
  });
}

class PartServerTest : public ::testing::Test {
 protected:
  explicit PartServerTest(const ServeLimits& limits = {.sessions = 4})
      : harness_(true, {graph::fullDevice(kThere), graph::fullDevice(kHere)}, limits) {
    harness_.act("act", [this] { acted_(); });
    client_ = std::make_unique<RawClient>(reactor_, harness_.server(kHere).port());
    session_ = open(*client_, kSession);
  }
  ~PartServerTest() noexcept override {}  // kj's may throw, gtest's may not

  static schema::GraphSession::Client open(RawClient& client, const wire::SessionToken& token) {
    auto request = client.gate().helloRequest();
    wire::encodeToken(token, request.initToken());
    return client.ask(kj::mv(request)).getSession();
  }

  void registerPart(const std::shared_ptr<TaskPart>& part, uint64_t plan = kPlan,
                    uint64_t wrong_digest = 0) {
    auto request = session_.registerPartRequest();
    request.setPlan(plan);
    request.setDigest(engine::digestOf(*part) ^ wrong_digest);
    wire::encodePart(part, {{kThere, kPeer}}, client_->connection.stream(), request.initPart());
    client_->ask(kj::mv(request));
  }

  auto start(uint64_t step, uint32_t deadline_ms = 60'000, uint64_t plan = kPlan) {
    auto request = session_.runPartRequest();
    request.setPlan(plan);
    request.setStep(step);
    request.setDeadlineMs(deadline_ms);
    return request.send();
  }
  float run(uint64_t step, uint32_t deadline_ms = 60'000) {
    const auto answer = start(step, deadline_ms).wait(client_->reactor.wait_scope);
    return wire::readTensor(answer.getFetches()[0], "it").as<float>()[0];
  }
  void abort(uint64_t step, const Error& cause) {
    auto request = session_.abortRequest();
    request.setStep(step);
    request.setCause(net::toKj(cause).getDescription());
    client_->ask(kj::mv(request));
  }

  // worker/0, as worker/1 sees it.
  struct Peer {
    Peer(net::Reactor& reactor, uint16_t port, TaskId self, Incarnation incarnation,
         TaskId callee = kHere, const wire::SessionToken& session = kSession)
        : client(reactor, port) {
      auto request = client.gate().tensorsRequest();
      wire::encodeToken(session, request.initToken());
      wire::encodeTask(self, request.initCaller());
      wire::encodeTask(callee, request.initCallee());
      request.setIncarnation(incarnation.value);
      sink = client.ask(kj::mv(request)).getSink();
    }
    // Returns true if the tensor was too late.
    bool send(uint64_t step, float value, uint32_t edge = 0, size_t elements = 2) {
      const std::vector<float> values(elements, value);
      auto request = sink.sendTensorsRequest();
      request.setPlan(kPlan);
      request.setStep(step);
      auto tensor = request.initTensors(1)[0];
      tensor.setEdge(edge);
      tensor.initBytes(1).set(0,
                              capnp::Data::Reader(reinterpret_cast<const kj::byte*>(values.data()),
                                                  values.size() * sizeof(float)));
      return client.ask(kj::mv(request)).getOver();
    }
    RawClient client;
    schema::TensorSink::Client sink = nullptr;
  };
  Peer peer(TaskId self = kThere, Incarnation incarnation = kPeer) {
    return Peer(reactor_, harness_.server(kHere).port(), self, incarnation);
  }

  Json status() { return RawClient(reactor_, harness_.server(kHere).port()).status(); }
  // Waits until `is_so` holds for the status.
  void awaitStatus(const std::function<bool(const Json&)>& is_so) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!is_so(status())) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << status();
      std::this_thread::yield();
    }
  }

  // Kernels use these objects, so they outlive the kernels.
  std::latch go_on_{1};
  std::function<void()> acted_ = [] {};
  SessionHarness harness_;
  net::Reactor reactor_;
  std::unique_ptr<RawClient> client_;
  schema::GraphSession::Client session_ = nullptr;
};

}  // namespace dtf::serving
