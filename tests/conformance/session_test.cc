// Sessions over tasks of this process and over tasks that serve on real sockets: the same graphs
// give the same results. Scenarios 17 to 20 and 23; 16 is tests/unit/graph/placer_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <latch>
#include <mutex>
#include <thread>

#include "common/base/error.h"
#include "common/engine/session.h"
#include "common/graph/autodiff.h"
#include "common/graph/function.h"
#include "common/wire/arena_codec.h"
#include "tests/conformance/session_harness.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/random_graph.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::ElementsAre;
using testing::filled;
using testing::floats;
using ::testing::HasSubstr;
using testing::kPs0;
using testing::kWorker0;
using testing::kWorker1;
using testing::nameOf;
using testing::SessionHarness;

// worker/0 with two CPUs, worker/1 and ps/0 with one each.
std::vector<graph::DeviceName> fourDevices() {
  return {graph::fullDevice(kWorker0), graph::fullDevice(kWorker0, "CPU", 1),
          graph::fullDevice(kWorker1), graph::fullDevice(kPs0)};
}

// True: over sockets.
class SessionSuite : public ::testing::TestWithParam<bool> {
 protected:
  explicit SessionSuite(const serving::ServeLimits& limits = {.sessions = 4})
      : harness_(GetParam(), fourDevices(), limits) {}
  std::unique_ptr<Session> open(SessionOptions options = {}) {
    return std::make_unique<Session>(graph_, harness_.connect(), std::move(options));
  }
  static float run1(Session& session, std::vector<Feed> feeds, const std::string& fetch) {
    return session.run(feeds, std::vector{fetch}).at(0).as<float>()[0];
  }
  static void expectNothingLeft(const Session& session) {
    const RendezvousLoad load = session.load();
    EXPECT_EQ(load.steps + load.parked + load.owned_bytes + load.waiting, 0u);
  }
  auto on(const char* device) { return b_.deviceScope(device); }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  SessionHarness harness_;
  Tensor two_ = floats({1}, {2}), three_ = floats({1}, {3});
};

INSTANTIATE_TEST_SUITE_P(Tasks, SessionSuite, ::testing::Bool(), nameOf);

// Tensors travel in blobs of 1 MiB.
class SmallBlobSuite : public SessionSuite {
 protected:
  SmallBlobSuite() : SessionSuite({.sessions = 4, .chunk_bytes = 1 << 20}) {}
};

INSTANTIATE_TEST_SUITE_P(Tasks, SmallBlobSuite, ::testing::Bool(), nameOf);

// x on worker/0, Tanh on worker/1, five readers of that on ps/0.
TEST_P(SessionSuite, ATensorTravelsOnceToEachTaskHoweverManyReadIt) {
  const Output x = b_.relu(b_.placeholder("x", DType::kFloat32, {1}));
  std::vector<Output> readers;
  {
    const auto there = on("/job:worker/task:1");
    const Output middle = b_.scale(x, 2);
    const auto ps = on("/job:ps/task:0");
    for (int i = 0; i < 5; ++i) readers.push_back(b_.scale(middle, 10 + i));
  }
  b_.node("AddN", readers, {}, "sum");
  const auto session = open();
  EXPECT_EQ(run1(*session, {{"x", &two_}}, "sum"), 4 * (10 + 11 + 12 + 13 + 14));
  EXPECT_EQ(session->counts().kernels, 8u);
  expectNothingLeft(*session);
}

TEST_P(SessionSuite, OnlyAncestorsRunAndASignatureIsRegisteredOnce) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  const Output here = b_.scale(x, 2);
  const auto there = on("/job:worker/task:1");
  b_.node("Relu", {here}, {}, "near");
  const auto ps = on("/job:ps/task:0");
  b_.node("Tanh", {here}, {}, "far");
  const auto session = open();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run1(*session, {{"x", &two_}}, "near"), 4);
  EXPECT_EQ(session->counts().plans, 1u);
  EXPECT_EQ(session->counts().kernels, 10u);
  EXPECT_EQ(run1(*session, {{"Scale", &three_}}, "near"), 3) << "a feed cuts above it";
  EXPECT_EQ(session->counts().kernels, 11u);
  EXPECT_THAT(errorText([&] {
                run1(*session, {{"x", &two_}}, "naer");
              }),
              HasSubstr("did you mean 'near'"));
}

TEST_P(SessionSuite, VariablesLieWithTheirTask) {
  {
    const auto ps = on("/job:ps/task:0");
    b_.variable("w", {1});
  }
  const Output w{graph_.find("w")->id};
  const auto there = on("/job:worker/task:1");
  b_.node("Scale", {w}, {{"factor", 10.0}}, "y");
  const auto session = open();
  EXPECT_THAT(errorText([&] { run1(*session, {}, "y"); }), HasSubstr("'w' has no value yet"));
  session->setVariable("w", two_);
  EXPECT_EQ(run1(*session, {}, "y"), 20);
  session->setVariable("w", three_);
  EXPECT_EQ(run1(*session, {}, "y"), 30);
  EXPECT_EQ(run1(*session, {}, "w"), 3);
}

// 1 MiB and more, so that bytes go by reference; and 5 bytes, which fill no word.
TEST_P(SessionSuite, TensorsOfAllSizesAndTypesArrive) {
  const int64_t many = (1 << 18) + 1;
  const Output x = b_.placeholder("x", DType::kFloat32, {many});
  const Output bytes = b_.placeholder("bytes", DType::kUInt8, {5});
  const Output none = b_.placeholder("none", DType::kFloat32, {0, 3});
  const auto there = on("/job:worker/task:1");
  b_.node("Scale", {x}, {{"factor", 3.0}}, "tripled");
  b_.node("Identity", {bytes}, {}, "same");
  b_.node("Identity", {none}, {}, "nothing");
  const auto session = open();
  const Tensor large = filled({many}, 2), empty(DType::kFloat32, {0, 3});
  Tensor few(DType::kUInt8, {5});
  for (uint8_t i = 0; i < 5; ++i) few.as<uint8_t>()[i] = i;
  const std::vector<Feed> feeds = {{"x", &large}, {"bytes", &few}, {"none", &empty}};
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto got = session->run(feeds, std::vector<std::string>{"tripled", "same", "nothing"});
    const auto sixes = got[0].as<float>();
    EXPECT_EQ(std::count(sixes.begin(), sixes.end(), 6.0f), many);
    EXPECT_THAT(got[1].as<uint8_t>(), ElementsAre(0, 1, 2, 3, 4));
    EXPECT_EQ(got[2].shape(), (Shape{0, 3}));
  }
  expectNothingLeft(*session);
}

// Tensors go from worker/0 through worker/1 to ps/0. Their sizes lie around the limits between
// copies, references and blobs of 1 MiB; the largest takes many blobs.
TEST_P(SmallBlobSuite, TensorsOfManyBytesArriveWhole) {
  constexpr int64_t kMiB = 1 << 20;
  const std::vector<int64_t> sizes = {(32 << 10) - 1, 32 << 10, kMiB - 1,
                                      kMiB,           kMiB + 1, 64 * kMiB};
  std::vector<Tensor> values;
  std::vector<std::string> fetches;
  values.reserve(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    const Output x = b_.placeholder(name, DType::kUInt8, {sizes[i]});
    fetches.push_back("there" + std::to_string(i));
    const auto there = on("/job:worker/task:1");
    const Output middle{b_.node("Identity", {x}, {}, fetches.back())};
    fetches.push_back("end" + std::to_string(i));
    const auto ps = on("/job:ps/task:0");
    b_.node("Identity", {middle}, {}, fetches.back());
    Tensor value(DType::kUInt8, {sizes[i]});
    for (int64_t at = 0; at < sizes[i]; at += 997)
      value.as<uint8_t>()[static_cast<size_t>(at)] = static_cast<uint8_t>(at / 997 + i);
    values.push_back(std::move(value));
  }
  std::vector<Feed> feeds;
  std::vector<std::string> names;
  for (size_t i = 0; i < sizes.size(); ++i) names.push_back("x" + std::to_string(i));
  for (size_t i = 0; i < sizes.size(); ++i) feeds.push_back({names[i], &values[i]});
  const auto session = open();
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto got = session->run(feeds, fetches);
    for (size_t i = 0; i < got.size(); ++i) {
      const Tensor& sent = values[i / 2];
      ASSERT_EQ(got[i].bytes(), sent.bytes());
      EXPECT_EQ(std::memcmp(got[i].data(), sent.data(), sent.bytes()), 0) << fetches[i];
    }
  }
  expectNothingLeft(*session);
}

// The product is 6 * 2^20 for any devices of a, b and the product. From TensorFlow's MultiDevices.
TEST_P(SessionSuite, AProductIsTheSameOnAllDevices) {
  constexpr int64_t kLength = 1 << 20;
  const std::vector<std::string> devices = {"/cpu:1", "/job:worker/task:1", "/job:ps/task:0"};
  std::vector<std::string> products;
  for (const std::string& of_a : devices) {
    for (const std::string& of_b : devices) {
      for (const std::string& of_product : devices) {
        Output a, b;
        {
          const auto device = b_.deviceScope(of_a);
          a = b_.constant({1, kLength}, 2);
        }
        {
          const auto device = b_.deviceScope(of_b);
          b = b_.constant({kLength, 1}, 3);
        }
        const auto device = b_.deviceScope(of_product);
        products.push_back("product" + std::to_string(products.size()));
        b_.node("MatMul", {a, b}, {}, products.back());
      }
    }
  }
  const auto session = open();
  for (const std::string& product : products) EXPECT_EQ(run1(*session, {}, product), 6 * kLength);
  expectNothingLeft(*session);
}

// Four towers on three tasks, each with a quarter of the batch: the mean of their gradients, on the
// ps, equals one tower's gradient of the whole batch. Scenario 23.
TEST_P(SessionSuite, TowersOnTasksGiveTheGradientOfTheWholeBatch) {
  Output w;
  {
    const auto ps = on("/job:ps/task:0");
    w = b_.variable("w", {3, 2});
  }
  const Output x = b_.placeholder("x", DType::kFloat32, {8, 3});
  const Output wanted = b_.placeholder("wanted", DType::kFloat32, {8, 2});
  const auto gradient = [&](const Output& own_x, const Output& own_wanted) {
    const Output y = b_.tanh(b_.matMul(own_x, w));
    const Output loss = b_.mean(b_.squaredDifference(y, own_wanted));
    return graph::addGradients(b_.graph(), loss, std::array{w})[0];
  };
  const auto name = [this](const Output& output) { return graph_.node(output.node).name; };
  const Output one = gradient(x, wanted);
  std::vector<Output> towers;
  const char* const places[] = {"/cpu:0", "/cpu:1", "/job:worker/task:1", "/job:ps/task:0"};
  for (int64_t tower = 0; tower < 4; ++tower) {
    const auto device = b_.deviceScope(places[tower]);
    towers.push_back(
        gradient(b_.slice(x, {tower * 2, 0}, {2, 3}), b_.slice(wanted, {tower * 2, 0}, {2, 2})));
  }
  const auto ps = on("/job:ps/task:0");
  const Output mean = b_.scale(b_.addN(towers), 0.25);
  const auto session = open();
  Random random(1);
  const auto drawn = [&random](Shape shape) {
    Tensor tensor(DType::kFloat32, std::move(shape));
    for (float& element : tensor.as<float>()) element = random.uniform(-1.0f, 1.0f);
    return tensor;
  };
  const Tensor x_value = drawn({8, 3}), wanted_value = drawn({8, 2});
  session->setVariable("w", drawn({3, 2}));
  const std::vector<Feed> feeds = {{"x", &x_value}, {"wanted", &wanted_value}};
  const auto both = session->run(feeds, std::vector{name(one), name(mean)});
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(both[0].as<float>()[i], both[1].as<float>()[i], 1e-6) << i;
    EXPECT_NE(both[0].as<float>()[i], 0) << i;
  }
}

// x_t + h * w over a sequence on worker/1, with w and its gradient on the ps: as on one device.
TEST_P(SessionSuite, ALoopRunsWhereItIsPlacedAndSoDoesItsGradient) {
  const graph::TensorSpec state{DType::kFloat32, {2, 3}}, square{DType::kFloat32, {3, 3}};
  using Parameters = std::span<const Output>;
  const auto twice = graph::Function::build(
      graph::standardOps(), std::array{state},
      [](graph::Builder& b, Parameters p) { return std::vector{b.scale(p[0], 2)}; });
  const auto body = graph::Function::build(
      graph::standardOps(), std::array{state, state, square}, [&](graph::Builder& b, Parameters p) {
        const Output next = b.tanh(b.add(p[1], b.matMul(p[0], p[2])));
        return b.cond(b.less(b.mean(next), b.constant({}, 0)), {next}, twice,
                      graph::Function::build(
                          graph::standardOps(), std::array{state},
                          [](graph::Builder&, Parameters q) { return std::vector{q[0]}; }));
      });
  Output w, loss, gradient;
  {
    const auto ps = on("/job:ps/task:0");
    w = b_.variable("w", {3, 3});
  }
  const Output x = b_.placeholder("x", DType::kFloat32, {5, 2, 3});
  {
    const auto other = on("/job:worker/task:1");
    const auto loop = b_.whileLoop({.carried = {b_.constant({2, 3}, 0)},
                                    .sequences = {x},
                                    .captured = {w},
                                    .body = body,
                                    .cond = nullptr,
                                    .max_iterations = 5,
                                    .keep_carried = true});
    loss = {b_.node("Mean", {loop.carried[0]}, {}, "loss")};
    gradient = graph::addGradients(graph_, loss, std::array{w})[0];
    gradient = {b_.node("Identity", {gradient}, {}, "gradient")};
  }
  Random random(3);
  graph::testing::Feeds values;
  for (const Output& fed : {x, w})
    for (int64_t i = 0; i < graph_.spec(fed).shape.elements(); ++i)
      values[fed].push_back(random.uniform(-1.0f, 1.0f));
  const auto tensor = [&](const Output& of) {
    return floats(graph_.spec(of).shape, std::vector<float>(values[of].begin(), values[of].end()));
  };
  const Tensor fed = tensor(x);
  Session spread(graph_, harness_.connect());
  spread.setVariable("w", tensor(w));
  const auto actual =
      spread.run(std::vector<Feed>{{"x", &fed}}, std::vector<std::string>{"loss", "gradient"});
  const auto expected = graph::testing::evaluate(graph_, values, std::array{loss, gradient});
  for (size_t fetch = 0; fetch < 2; ++fetch)
    for (size_t i = 0; i < expected[fetch].size(); ++i)
      EXPECT_NEAR(actual[fetch].as<float>()[i], expected[fetch][i], 1e-6) << fetch << " " << i;
  expectNothingLeft(spread);
}

TEST_P(SessionSuite, RandomGraphsComputeTheSameAsOnOneDevice) {
  testing::Devices one(testing::cpusOfWorker0(1));
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed), same(seed);
    const std::vector<std::string> places = {"", "/cpu:1", "/task:1", "/job:ps/task:0"};
    const auto cut = graph::testing::makeRandomGraph(random, 30, places);
    const auto whole = graph::testing::makeRandomGraph(same, 30, std::vector(4, std::string()));
    Session here(whole.graph, one.all()), spread(cut.graph, harness_.connect());
    std::vector<Tensor> values;
    std::vector<Feed> feeds;
    values.reserve(whole.feeds.size());
    for (const auto& [output, elements] : whole.feeds) {
      const graph::Node& source = whole.graph.node(output.node);
      values.push_back(
          floats(source.outputs[0].shape, std::vector<float>(elements.begin(), elements.end())));
      if (source.op == "Variable") {
        for (Session* const session : {&here, &spread})
          session->setVariable(source.name, values.back());
      } else {
        feeds.push_back({source.name, &values.back()});
      }
    }
    std::vector<std::string> fetches;
    for (const Output& tensor : whole.tensors)
      fetches.push_back(whole.graph.node(tensor.node).name);
    const auto expected = here.run(feeds, fetches);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto actual = spread.run(feeds, fetches);
      for (size_t i = 0; i < fetches.size(); ++i)
        EXPECT_THAT(actual[i].as<float>(), ::testing::ElementsAreArray(expected[i].as<float>()))
            << fetches[i];
    }
    expectNothingLeft(spread);
  }
}

// "fails" on worker/1 while "busy" on worker/0 computes, and "waits" on ps/0 waits for both.
class FailingSuite : public SessionSuite {
 protected:
  FailingSuite() {
    const Output x = b_.placeholder("x", DType::kFloat32, {1});
    const Output busy{b_.node("Tanh", {x}, {}, "busy")};
    const auto there = on("/job:worker/task:1");
    const Output fails{b_.node("Tanh", {x}, {}, "fails")};
    const auto ps = on("/job:ps/task:0");
    b_.node("Add", {fails, busy}, {}, "waits");
    harness_.act("busy", [this] {
      if (!busy_.try_wait()) busy_.count_down();
      failed_.wait();
    });
  }

  std::latch busy_{1}, failed_{1};
};
INSTANTIATE_TEST_SUITE_P(Tasks, FailingSuite, ::testing::Bool(), nameOf);

TEST_P(FailingSuite, TheRootCauseIsToldAndNothingIsLeft) {
  const std::string cause = "fantasia! " + std::string(1 << 20, 'x');
  std::atomic<bool> fail{true};
  harness_.act("fails", [&] {
    busy_.wait();
    if (!failed_.try_wait()) failed_.count_down();
    if (fail) throw Error(ErrorCode::kBadData, cause);
  });
  const auto session = open();
  EXPECT_EQ(errorText([&] {
              run1(*session, {{"x", &two_}}, "waits");
            }),
            cause)
      << "all of a megabyte";
  EXPECT_EQ(session->counts().steps, 0u);
  expectNothingLeft(*session);
  fail = false;
  EXPECT_EQ(run1(*session, {{"x", &two_}}, "waits"), 4) << "the plan is good for another step";
  expectNothingLeft(*session);
}

TEST_P(SessionSuite, MistakesInAPartNameTheNode) {
  const auto there = on("/job:worker/task:1");
  const Output w = b_.variable("w", {1});
  b_.applyGradient(w, w);
  const auto session = open();
  EXPECT_THAT(errorText([&] { session->run({}, {}, std::vector{std::string("ApplyGradient")}); }),
              HasSubstr("(ApplyGradient)"));
}

TEST_P(SessionSuite, ThreadsShareASession) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  const Output doubled = b_.scale(x, 2);
  {
    const auto there = on("/job:worker/task:1");
    b_.scale(doubled, 5);
  }
  const auto session = open();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&session, &wrong, t] {
      for (int i = 0; i < 20; ++i) {
        const float value = static_cast<float>(t * 100 + i);
        const Tensor fed = floats({1}, {value});
        const std::string fetch = t % 2 == 0 ? "Scale" : "Scale_1";
        const auto got = session->run(std::vector<Feed>{{"x", &fed}}, std::vector{fetch});
        if (got[0].as<float>()[0] != value * (t % 2 == 0 ? 2 : 10)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(session->counts().steps, 80u);
  EXPECT_EQ(session->counts().plans, 2u);
}

TEST_P(SessionSuite, PlansThatAreDroppedAreReleased) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  const auto there = on("/job:worker/task:1");
  b_.node("Relu", {x}, {}, "a");
  b_.node("Tanh", {x}, {}, "b");
  const auto session = open({.plans_max = 1});
  for (const char* fetch : {"a", "b", "a", "b"}) run1(*session, {{"x", &two_}}, fetch);
  EXPECT_EQ(session->counts().plans, 4u);
  if (!harness_.isRemote()) return;
  net::Reactor reactor;
  testing::RawClient client(reactor, harness_.server(kWorker1).port());
  EXPECT_LE(client.status()["sessions"][0].uint64At("plans"), 2u) << "one release may travel";
}

}  // namespace
}  // namespace dtf::engine
