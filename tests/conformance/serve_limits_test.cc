// Each limit of a task that serves, and the error that a client gets beyond it. The session goes
// on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <latch>

#include "common/base/text.h"
#include "common/engine/session.h"
#include "tests/conformance/part_server_fixture.h"
#include "tests/unit/graph/control_functions.h"

namespace dtf::serving {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

// Small limits, so that each test reaches one.
ServeLimits smallLimits() {
  return {.plans = 2,
          .variables = 3,
          .calls = 2,
          .sinks = 1,
          .cause_bytes = 100,
          .bytes = 4 * kMiB,
          .rendezvous = {.parcels = 2, .bytes = 1000}};
}

class ServeLimitsTest : public PartServerTest {
 protected:
  explicit ServeLimitsTest(const ServeLimits& limits = smallLimits()) : PartServerTest(limits) {}

  // Sets a variable of `elements` floats.
  void setVariable(const std::string& name, int64_t elements, float value = 1) {
    Tensor tensor(DType::kFloat32, {elements});
    std::fill(tensor.as<float>().begin(), tensor.as<float>().end(), value);
    auto request = session_.setVariableRequest();
    request.setDevice(graph::fullDevice(kHere).str());
    request.setName(name);
    wire::TensorWriter writer(client_->connection.stream());
    writer.write({tensor.dtype(), tensor.shape()}, {tensor.data(), tensor.bytes()},
                 request.initValue());
    client_->ask(kj::mv(request));
  }
  uint64_t held() { return status().uint64At("held_bytes"); }
  // Waits, because a message is freed only soon after its reply.
  void awaitHeld(const std::function<bool(uint64_t)>& is_so) {
    awaitStatus([&](const auto& status) { return is_so(status.uint64At("held_bytes")); });
  }

  // "act" copies the variable w.
  static std::shared_ptr<TaskPart> readingPart(int64_t elements) {
    auto part = receivingPart();
    part->graph = graph::Graph(graph::standardOps());
    part->edges = {};
    graph::Builder b(part->graph);
    const auto device = b.deviceScope(graph::fullDevice(kHere).str());
    part->fetches = {{b.node("Tanh", {b.variable("w", {elements})}, {}, "act")}};
    return part;
  }
};

TEST_F(ServeLimitsTest, Plans) {
  registerPart(receivingPart(), 1);
  registerPart(receivingPart(), 2);
  EXPECT_THAT(failureOf([&] { registerPart(receivingPart(), 3); }),
              HasSubstr("the session has 2 plans on worker/1, of at most 2"));
  auto release = session_.releasePartRequest();
  release.setPlan(1);
  client_->ask(kj::mv(release));
  registerPart(receivingPart(), 3);
}

TEST_F(ServeLimitsTest, Variables) {
  for (const char* name : {"a", "b", "c"}) setVariable(name, 1);
  EXPECT_THAT(
      failureOf([&] { setVariable("d", 1); }),
      HasSubstr("node 'd' (Variable) is one more than the 3 variables that a task may have"));
  setVariable("b", 1);
}

TEST_F(ServeLimitsTest, BytesOfValues) {
  setVariable("a", 200'000);
  setVariable("b", 200'000);
  EXPECT_GE(held(), 1'600'000u);
  EXPECT_THAT(failureOf([&] { setVariable("c", 500'000); }),
              AllOf(HasSubstr("worker/1 has no room for a value of the variable 'c', which takes "
                              "1.9 MiB"),
                    HasSubstr("of 4.0 MiB are taken; close other sessions")));
  setVariable("a", 200'000, 2);
  awaitHeld([](uint64_t bytes) { return bytes == 1'600'000; });
}

TEST_F(ServeLimitsTest, AMessageThatPassesTheBoundIsReadAndTheNextIsNot) {
  EXPECT_THAT(
      failureOf([&] { setVariable("a", 2'000'000); }),
      HasSubstr("worker/1 has no room for a value of the variable 'a', which takes 7.6 MiB"));
  awaitHeld([](uint64_t bytes) { return bytes == 0; });
  setVariable("a", 10);
}

TEST_F(ServeLimitsTest, AMessageOfMoreThanTwiceTheBoundEndsItsConnection) {
  EXPECT_THAT(failureOf([&] { setVariable("a", 2'200'000); }), HasSubstr("connection"));
}

// The check is the client's own, so it keeps its connection.
TEST_F(ServeLimitsTest, WhatATaskCanNeverHoldIsRefusedBeforeItIsSent) {
  graph::Graph graph(graph::standardOps());
  {
    graph::Builder b(graph);
    const auto device = b.deviceScope(graph::fullDevice(kHere).str());
    b.variable("w", {3 << 20});
    b.node("Slice", {b.placeholder("x", DType::kFloat32, {3 << 20})},
           {{"begin", Shape{0}}, {"size", Shape{1}}}, "y");
    b.node("Tanh", {b.placeholder("z", DType::kFloat32, {1})}, {}, "small");
  }
  engine::Session session(graph, harness_.connect());
  const Tensor large(DType::kFloat32, {3 << 20}), small(DType::kFloat32, {1});
  const auto refused = AllOf(HasSubstr("12.0 MiB"), HasSubstr("worker/1"),
                             HasSubstr("may hold 4.0 MiB, its share of its host's memory"));
  EXPECT_THAT(errorText([&] { session.setVariable("w", large); }), refused);
  const auto run = [&](const char* feed, const Tensor& value, const char* fetch) {
    return errorText([&] {
      session.run(std::vector<engine::Feed>{{feed, &value}}, std::vector<std::string>{fetch});
    });
  };
  EXPECT_THAT(run("x", large, "y"), refused);
  EXPECT_EQ(run("z", small, "small"), "");
}

// A step holds the value that it reads until its end, even if the variable is assigned meanwhile.
TEST_F(ServeLimitsTest, AValueThatAStepHoldsCountsUntilItsEnd) {
  std::latch computing(1);
  acted_ = [&] {
    computing.count_down();
    go_on_.wait();
  };
  registerPart(readingPart(200'000));
  const uint64_t part = held();
  EXPECT_GE(part, 800'000u) << "what it computes";
  setVariable("w", 200'000);
  auto running = start(1);
  client_->ask(session_.loadRequest());
  computing.wait();
  setVariable("w", 200'000, 2);
  awaitHeld([part](uint64_t bytes) { return bytes == part + 2 * 800'000; });
  go_on_.count_down();
  running.wait(reactor_.wait_scope);
  awaitHeld([part](uint64_t bytes) { return bytes == part + 800'000; });
}

TEST_F(ServeLimitsTest, BytesOfAPart) {
  EXPECT_THAT(failureOf([&] { registerPart(readingPart(2'000'000)); }),
              HasSubstr("worker/1 has no room for the tensors and workspaces of a part, which "
                        "takes 7.6 MiB"));
  EXPECT_EQ(held(), 0u);
  registerPart(readingPart(2));
}

// A function body of 300 nodes lives as long as its plan, and costs as much as 300 nodes of the
// part itself.
TEST_F(ServeLimitsTest, NodesOfFunctionsCountAsThoseOfAPart) {
  const auto chain = [](graph::Builder& b, Output x, int nodes) {
    for (int i = 0; i < nodes; ++i) x = b.tanh(x);
    return x;
  };
  const auto partOf = [&](int top, int in_body) {
    auto part = receivingPart();
    graph::Builder b(part->graph);
    const auto device = b.deviceScope(graph::fullDevice(kHere).str());
    const auto body =
        graph::testing::functionOf(1, {2}, [&](graph::Builder& f, std::span<const Output> p) {
          return std::vector{chain(f, p[0], in_body)};
        });
    const auto loop = b.whileLoop({.carried = {chain(b, part->fetches[0], top)},
                                   .sequences = {},
                                   .captured = {},
                                   .body = body,
                                   .cond = nullptr,
                                   .max_iterations = 2});
    part->fetches = loop.carried;
    return part;
  };
  registerPart(partOf(1, 1), 1);
  const uint64_t small = held();
  registerPart(partOf(1, 301), 2);
  EXPECT_GE(held(), small + 300 * 4096);
  auto release = session_.releasePartRequest();
  release.setPlan(1);
  client_->ask(kj::mv(release));
  EXPECT_THAT(failureOf([&] { registerPart(partOf(1, 1000), 3); }),
              HasSubstr("worker/1 has no room for the part of plan 3"));
}

// A QueueDequeue has few attributes, but holds its queue's text and an output for each component.
TEST_F(ServeLimitsTest, WhatNodesOfAPartAreToldCounts) {
  constexpr size_t kComponents = 50, kTakes = 10;
  const auto partOf = [&](size_t takes) {
    auto part = receivingPart();
    graph::Builder b(part->graph);
    const auto device = b.deviceScope(graph::fullDevice(kHere).str());
    std::string types, shapes;
    for (size_t i = 0; i < kComponents; ++i) {
      types += i == 0 ? "float32" : ", float32";
      shapes += i == 0 ? "[]" : ", []";
    }
    const Output queue{
        b.node("FIFOQueue", {},
               {{"component_types", types}, {"shapes", shapes}, {"capacity", int64_t{1}}}, "wide")};
    for (size_t i = 0; i < takes; ++i) b.node("QueueDequeue", {queue});
    return part;
  };
  registerPart(partOf(1), 1);
  const uint64_t first = held();
  registerPart(partOf(1 + kTakes), 2);
  const uint64_t told = std::string("float32, []").size() * kComponents + 256 * kComponents;
  EXPECT_GE(held() - first, first + kTakes * (4096 + told));
}

TEST_F(ServeLimitsTest, Calls) {
  registerPart(receivingPart(), 1);
  registerPart(receivingPart(), 2);
  auto one = start(1), other = start(2, 60'000, 2);
  EXPECT_THAT(failureOf([&] { setVariable("a", 1); }),
              HasSubstr("more than 2 calls at once in one session"));
}

TEST_F(ServeLimitsTest, Senders) {
  auto worker0 = peer();
  EXPECT_THAT(failureOf([&] { peer(); }),
              HasSubstr("worker/1 has 1 senders in this session, as many as it may"));
}

TEST_F(ServeLimitsTest, ASenderThatHasGoneMakesRoom) {
  { auto worker0 = peer(); }
  for (std::string failure = "none yet"; !failure.empty();) {
    failure = failureOf([&] { peer(); });
    if (!failure.empty()) {
      ASSERT_THAT(failure, HasSubstr("1 senders"));
    }
  }
}

TEST_F(ServeLimitsTest, CausesOfAborts) {
  registerPart(receivingPart());
  abort(1, Error(ErrorCode::kBadData, std::string(10'000, 'x')));
  const std::string told = failureOf([&] { run(1); });
  EXPECT_THAT(told, HasSubstr("xxx"));
  EXPECT_LE(told.size(), 100u);
}

TEST_F(ServeLimitsTest, TensorsThatWait) {
  registerPart(receivingPart());
  auto worker0 = peer();
  EXPECT_FALSE(worker0.send(1, 3));
  EXPECT_FALSE(worker0.send(2, 3));
  EXPECT_THAT(failureOf([&] { worker0.send(3, 3); }),
              HasSubstr("edge 0 of step 3 has no room: too many tensors wait on worker/1"));
  EXPECT_EQ(run(1), 30);
  EXPECT_FALSE(worker0.send(3, 4));
  EXPECT_EQ(run(3), 40);
}

class ConnectionsTest : public ServeLimitsTest {
 protected:
  ConnectionsTest() : ServeLimitsTest({.connections = 8}) {}
};

TEST_F(ConnectionsTest, AreBounded) {
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<schema::GraphSession::Client> sessions;
  const auto another = [&](uint64_t number) {
    clients.push_back(std::make_unique<RawClient>(reactor_, harness_.server(kHere).port()));
    sessions.push_back(open(*clients.back(), {.number = number, .secret = {1, 1}}));
  };
  for (uint64_t number = 1; number <= 7; ++number) another(number);
  EXPECT_NE(failureOf([&] { another(8); }), "") << "closed, and logged";
  EXPECT_EQ(clients.front()->status()["sessions"].size(), 8u);
}

class RegistrationsTest : public ServeLimitsTest {
 protected:
  RegistrationsTest() : ServeLimitsTest({.registrations = 0}) {}
};

TEST_F(RegistrationsTest, AtOnceAreBounded) {
  EXPECT_THAT(failureOf([&] { registerPart(receivingPart()); }),
              HasSubstr("and 0 are being made, of at most 0"));
}

}  // namespace
}  // namespace dtf::serving
