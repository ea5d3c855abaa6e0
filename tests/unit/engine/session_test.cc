#include "common/engine/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <thread>

#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "tests/unit/engine/devices.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/random_graph.h"

namespace dtf::engine {
namespace {

using graph::NodeId;
using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor floats(Shape shape, std::vector<float> values) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

Tensor filled(Shape shape, float value) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  std::fill(tensor.as<float>().begin(), tensor.as<float>().end(), value);
  return tensor;
}

class SessionTest : public ::testing::Test {
 protected:
  // Returns one value of one fetch.
  float run1(Session& session, std::vector<Feed> feeds, const std::string& fetch) {
    return session.run(feeds, std::vector{fetch}).at(0).as<float>()[0];
  }
  // Returns the number of kernels that one step runs.
  uint64_t kernelsOf(Session& session, std::vector<Feed> feeds, std::vector<std::string> fetches,
                     std::vector<std::string> targets = {}) {
    const uint64_t before = session.counts().kernels;
    session.run(feeds, fetches, targets);
    return session.counts().kernels - before;
  }
  static void expectNothingLeft(const Session& session) {
    const RendezvousLoad load = session.load();
    EXPECT_EQ(load.steps + load.parked + load.waiting, 0u);
  }
  std::string name(Output output) const { return graph_.node(output.node).name; }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  testing::Devices devices_{testing::cpusOfWorker0(2)};
  Tensor two_ = floats({1}, {2}), three_ = floats({1}, {3});
};

// x -> Relu -> Tanh -> Sigmoid, and a branch from Relu to Scale.
class ChainTest : public SessionTest {
 protected:
  Output x_ = b_.placeholder("x", DType::kFloat32, {1});
  Output relu_ = b_.relu(x_), tanh_ = b_.tanh(relu_), sigmoid_ = b_.sigmoid(tanh_);
  Output scale_ = b_.scale(relu_, 10);
  Session session_{graph_, devices_.all()};
};

TEST_F(ChainTest, AFetchRunsItsAncestorsOnly) {
  EXPECT_EQ(kernelsOf(session_, {{"x", &two_}}, {"Relu"}), 1u);
  EXPECT_EQ(kernelsOf(session_, {{"x", &two_}}, {"Sigmoid"}), 3u);
  EXPECT_EQ(kernelsOf(session_, {{"x", &two_}}, {"Tanh", "Scale"}), 3u);
  EXPECT_EQ(kernelsOf(session_, {{"x", &two_}}, {}, {"Tanh"}), 2u) << "a target, too";
  EXPECT_EQ(kernelsOf(session_, {{"x", &two_}}, {}, {"Tanh:0"}), 2u) << "by its output's name";
  EXPECT_EQ(kernelsOf(session_, {{"x", &two_}}, {"x"}), 0u);
  EXPECT_EQ(run1(session_, {{"x", &two_}}, "Scale"), 20);
}

TEST_F(ChainTest, AFeedCutsAboveIt) {
  EXPECT_EQ(kernelsOf(session_, {{"Relu", &two_}}, {"Scale"}), 1u);
  EXPECT_EQ(run1(session_, {{"Relu:0", &three_}}, "Scale"), 30);
  EXPECT_EQ(run1(session_, {{"Relu", &three_}}, "Relu"), 3) << "what is fed can be fetched";
}

TEST_F(ChainTest, TheSameSignatureIsCompiledOnce) {
  for (int i = 0; i < 5; ++i)
    session_.run(std::vector<Feed>{{"x", &two_}}, std::vector<std::string>{"Relu"});
  EXPECT_EQ(session_.counts().plans, 1u);
  EXPECT_EQ(session_.counts().steps, 5u);
  EXPECT_EQ(session_.counts().kernels, 5u);
  // Feeds in another order are the same feeds.
  for (const auto& feeds : {std::vector<Feed>{{"x", &two_}, {"Tanh", &two_}},
                            std::vector<Feed>{{"Tanh", &two_}, {"x", &two_}}}) {
    session_.run(feeds, std::vector<std::string>{"Sigmoid", "Scale"});
  }
  EXPECT_EQ(session_.counts().plans, 2u);
}

TEST_F(ChainTest, PlansAreBounded) {
  Session session(graph_, devices_.all(), {.plans_max = 1});
  for (const char* fetch : {"Relu", "Relu", "Tanh", "Relu"}) {
    run1(session, {{"x", &two_}}, fetch);
  }
  EXPECT_EQ(session.counts().plans, 3u);
}

TEST_F(ChainTest, NamesThatAreNotThereAreRefused) {
  const auto error = [this](std::vector<Feed> feeds, std::vector<std::string> fetches,
                            std::vector<std::string> targets = {}) {
    return errorText([&] { session_.run(feeds, fetches, targets); });
  };
  EXPECT_THAT(error({{"x", &two_}}, {"Sigmod"}),
              AllOf(HasSubstr("'Sigmod'"), HasSubstr("did you mean 'Sigmoid'")));
  EXPECT_THAT(error({{"y", &two_}}, {"Relu"}), HasSubstr("'y'"));
  EXPECT_THAT(error({{"x", &two_}}, {"Relu:1"}), HasSubstr("1 output"));
  EXPECT_THAT(error({{"x", &two_}}, {}, {"train"}), HasSubstr("'train'"));
}

TEST_F(ChainTest, FeedsThatDontFitAreRefused) {
  const auto error = [this](std::vector<Feed> feeds) {
    return errorText([&] { run1(session_, feeds, "Scale"); });
  };
  const Tensor wide = filled({2}, 1), bytes(DType::kUInt8, {1});
  EXPECT_THAT(error({{"x", &wide}}),
              AllOf(HasSubstr("'x' is float32[1]"), HasSubstr("float32[2]")));
  EXPECT_THAT(error({{"x", &bytes}}), HasSubstr("uint8[1]"));
  EXPECT_THAT(error({}), AllOf(HasSubstr("not fed"), HasSubstr("'x'")));
  EXPECT_THAT(error({{"x", &two_}, {"x:0", &two_}}), HasSubstr("fed twice"));
}

TEST_F(SessionTest, ConstantsAreComputedWhenTheStepIsMade) {
  const Output y = b_.concat({b_.constant({1}, 2), b_.relu(b_.constant({1}, 3))}, 0);
  const Output x = b_.placeholder("x", DType::kFloat32, {2});
  const Output sum = b_.add(x, y);
  Session session(graph_, devices_.all());
  const Tensor ones = filled({2}, 1);
  EXPECT_EQ(kernelsOf(session, {}, {name(y)}), 0u);
  EXPECT_EQ(kernelsOf(session, {{"x", &ones}}, {name(sum)}), 1u);
  const auto values = session.run(std::vector<Feed>{{"x", &ones}}, std::vector{name(sum), name(y)});
  EXPECT_THAT(values[0].as<float>(), ElementsAre(3, 4));
  EXPECT_THAT(values[1].as<float>(), ElementsAre(2, 3));
}

TEST_F(SessionTest, EqualNodesRunOnce) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  const Output a = b_.scale(x, 2), b = b_.scale(x, 2);
  const Output sum = b_.add(a, b);
  Session session(graph_, devices_.all());
  EXPECT_EQ(kernelsOf(session, {{"x", &two_}}, {name(sum), name(a), name(b)}), 2u);
  EXPECT_EQ(run1(session, {{"x", &two_}}, name(sum)), 8);
}

TEST_F(SessionTest, VariablesKeepWhatTheyWereGiven) {
  const Output w = b_.variable("w", {1});
  const Output y = b_.scale(w, 10);
  Session session(graph_, devices_.all());
  EXPECT_THAT(errorText([&] { run1(session, {}, name(y)); }), HasSubstr("'w' has no value yet"));
  session.setVariable("w", two_);
  EXPECT_EQ(run1(session, {}, name(y)), 20);
  session.setVariable("w", three_);
  EXPECT_EQ(run1(session, {}, name(y)), 30);
  EXPECT_EQ(run1(session, {{"w", &two_}}, name(y)), 20) << "fed, it is as any tensor";
  EXPECT_EQ(run1(session, {}, "w"), 3);
  EXPECT_THAT(errorText([&] { session.setVariable("w", filled({2}, 0)); }),
              HasSubstr("float32[1]"));
  EXPECT_THAT(errorText([&] { session.setVariable(name(y), two_); }), HasSubstr("not a Variable"));
}

TEST_F(SessionTest, OpsThatASessionCantRunAreNamed) {
  const Output w = b_.variable("w", {1});
  const NodeId update = b_.applyGradient(w, w);
  {
    Session session(graph_, devices_.all());
    EXPECT_THAT(errorText([&] { kernelsOf(session, {}, {}, {graph_.node(update).name}); }),
                HasSubstr("(ApplyGradient)"));
  }
  b_.node("_Push", {w}, {{"variable", std::string("w")}}, "pushes");
  EXPECT_THAT(errorText([&] { Session(graph_, devices_.all()); }),
              AllOf(HasSubstr("'pushes'"), HasSubstr("_Push")));
}

TEST_F(SessionTest, PlacementMistakesNameTheLine) {
  const auto device = b_.deviceScope("/device:GPU:0");
  b_.placeholder("x", DType::kFloat32, {1});
  EXPECT_THAT(errorText([&] {
                Session(graph_, devices_.all(), {.lines = {{"x", "model.yaml:3:7"}}});
              }),
              AllOf(HasSubstr("model.yaml:3:7: node 'x'"), HasSubstr("/device:CPU:1")));
  Session soft(graph_, devices_.all(), {.soft_placement = true});
  EXPECT_EQ(run1(soft, {{"x", &two_}}, "x"), 2);
}

// A product of two tensors on three tasks, each of the three nodes on any task.
TEST_F(SessionTest, EachPlacementGivesTheSameProduct) {
  const Shape shape{1 << 14};
  const std::vector<graph::DeviceName> names = {graph::fullDevice({JobKind::kWorker, 0}),
                                                graph::fullDevice({JobKind::kWorker, 0}, "CPU", 1),
                                                graph::fullDevice({JobKind::kPs, 1})};
  testing::Devices devices(names);
  const Tensor twos = filled(shape, 2), threes = filled(shape, 3);
  for (int placement = 0; placement < 27; ++placement) {
    SCOPED_TRACE(placement);
    graph::Graph graph(graph::standardOps());
    graph::Builder b(graph);
    const auto on = [&](int which) {
      return b.deviceScope(names[static_cast<size_t>(which % 3)].str());
    };
    const auto sourceOn = [&](const char* name, int which) {
      const auto device = on(which);
      return b.relu(b.placeholder(name, DType::kFloat32, shape));
    };
    const Output a = sourceOn("a", placement), c = sourceOn("b", placement / 3);
    const auto device = on(placement / 9);
    b.mul(a, c);
    Session session(graph, devices.all());
    const auto product = session.run(std::vector<Feed>{{"a", &twos}, {"b", &threes}},
                                     std::vector<std::string>{"Mul"});
    const std::span<const float> sixes = product[0].as<float>();
    EXPECT_EQ(std::count(sixes.begin(), sixes.end(), 6.0f), shape.elements());
    EXPECT_EQ(session.counts().kernels, 3u);
    expectNothingLeft(session);
  }
}

TEST_F(SessionTest, RandomGraphsComputeTheSameOnFourDevicesAsOnOne) {
  const auto cpu1 = graph::fullDevice({JobKind::kWorker, 0}, "CPU", 1);
  testing::Devices four({graph::fullDevice({JobKind::kWorker, 0}), cpu1,
                         graph::fullDevice({JobKind::kWorker, 1}),
                         graph::fullDevice({JobKind::kPs, 0})});
  for (uint64_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed), same(seed);
    const std::vector<std::string> places = {"", "/cpu:1", "/task:1", "/job:ps/task:0"};
    const auto cut = graph::testing::makeRandomGraph(random, 40, places);
    // The same draws, all in one place.
    const auto whole = graph::testing::makeRandomGraph(same, 40, std::vector(4, std::string()));
    Session here(whole.graph, devices_.all()), spread(cut.graph, four.all());
    std::vector<Tensor> values;
    std::vector<Feed> feeds;
    values.reserve(whole.feeds.size());
    for (const auto& [output, elements] : whole.feeds) {
      const graph::Node& source = whole.graph.node(output.node);
      values.push_back(
          floats(source.outputs[0].shape, std::vector<float>(elements.begin(), elements.end())));
      if (source.op == "Variable") {
        for (Session* const session : {&here, &spread}) {
          session->setVariable(source.name, values.back());
        }
      } else {
        feeds.push_back({source.name, &values.back()});
      }
    }
    std::vector<std::string> fetches;
    for (const Output& tensor : whole.tensors) {
      fetches.push_back(whole.graph.node(tensor.node).name);
    }
    const auto expected = here.run(feeds, fetches);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto actual = spread.run(feeds, fetches);
      for (size_t i = 0; i < fetches.size(); ++i) {
        EXPECT_THAT(actual[i].as<float>(), ::testing::ElementsAreArray(expected[i].as<float>()))
            << fetches[i];
      }
    }
    expectNothingLeft(spread);
  }
}

TEST_F(SessionTest, AControlEdgeBetweenDevicesIsObeyed) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  const NodeId first = [&] {
    const auto device = b_.deviceScope("/cpu:1");
    return b_.node("Tanh", {x}, {}, "first");
  }();
  b_.node("Tanh", {x}, {}, "second", {first});
  std::vector<std::string> order;
  devices_.act("first", [&] { order.push_back("first"); });
  devices_.act("second", [&] { order.push_back("second"); });
  Session session(graph_, devices_.all());
  for (int i = 0; i < 3; ++i) {
    order.clear();
    EXPECT_EQ(run1(session, {{"x", &two_}}, "second"), 2);
    EXPECT_THAT(order, ElementsAre("first", "second"));
  }
}

// cpu:0 and cpu:1 both compute; neither ends before the other has begun.
TEST_F(SessionTest, DevicesComputeSideBySide) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  b_.node("Tanh", {x}, {}, "here");
  {
    const auto device = b_.deviceScope("/cpu:1");
    b_.node("Tanh", {x}, {}, "there");
  }
  std::latch both(2);
  for (const char* node : {"here", "there"}) {
    devices_.act(node, [&both] { both.arrive_and_wait(); });
  }
  Session session(graph_, devices_.all());
  EXPECT_EQ(kernelsOf(session, {{"x", &two_}}, {"here", "there"}), 2u);
}

// "fails" on cpu:0 fails while "busy" on cpu:1 runs. The nodes that wait for "fails", or follow
// "busy", never run.
class FailingStepTest : public SessionTest {
 protected:
  FailingStepTest() {
    const Output x = b_.placeholder("x", DType::kFloat32, {1});
    const Output fails{b_.node("Tanh", {x}, {}, "fails")};
    const auto device = b_.deviceScope("/cpu:1");
    const Output busy{b_.node("Tanh", {x}, {}, "busy")};
    b_.node("Add", {fails, busy}, {}, "follows");
    devices_.act("busy", [this] {
      once(busy_);
      failed_.wait();
    });
    devices_.act("follows", [this] { ++followed_; });
  }
  // Counts a latch down once, in the first of several steps.
  static void once(std::latch& latch) {
    if (!latch.try_wait()) latch.count_down();
  }
  std::string error(const std::string& fetch) {
    return errorText([&] { run1(*session_, {{"x", &two_}}, fetch); });
  }

  std::latch busy_{1}, failed_{1};
  std::atomic<int> followed_{0};
  std::unique_ptr<Session> session_;
};

TEST_F(FailingStepTest, TheCallerIsToldTheRootCauseAndTheOtherDeviceStops) {
  const std::string cause = "fantasia! " + std::string(1 << 20, 'x');
  bool fail = true;
  devices_.act("fails", [&] {
    busy_.wait();
    once(failed_);
    if (fail) throw Error(ErrorCode::kBadData, cause);
  });
  session_ = std::make_unique<Session>(graph_, devices_.all());
  EXPECT_EQ(error("follows"), cause) << "all of a megabyte";
  EXPECT_EQ(followed_, 0);
  EXPECT_EQ(session_->counts().steps, 0u);
  expectNothingLeft(*session_);
  fail = false;
  EXPECT_EQ(error("follows"), "") << "the plan is good for another step";
  EXPECT_EQ(followed_, 1);
  expectNothingLeft(*session_);
}

TEST_F(FailingStepTest, WhatIsNoErrorOfOursEndsTheStepToo) {
  devices_.act("fails", [this] {
    busy_.wait();
    once(failed_);
    throw std::runtime_error("out of luck");
  });
  session_ = std::make_unique<Session>(graph_, devices_.all());
  EXPECT_THAT(error("follows"), HasSubstr("out of luck"));
  expectNothingLeft(*session_);
}

// The gradient of a layer's w, for inputs and wanted outputs of this many rows.
Output gradientOf(graph::Builder& b, Output w, Output x, Output wanted) {
  const Output loss = b.mean(b.squaredDifference(b.tanh(b.matMul(x, w)), wanted));
  return graph::addGradients(b.graph(), loss, std::array{w})[0];
}

// Two towers have half of the batch each, as slices of a feed on cpu:0 or as feeds of their own.
// The mean of their gradients, on cpu:0, equals one tower's gradient of the whole batch.
TEST_F(SessionTest, TowersGiveTheGradientOfTheWholeBatch) {
  const Shape whole{8, 3}, half{4, 3};
  const Output x = b_.placeholder("x", DType::kFloat32, whole);
  const Output wanted = b_.placeholder("wanted", DType::kFloat32, {8, 2});
  const Output w = b_.variable("w", {3, 2});
  const Output one = gradientOf(b_, w, x, wanted);
  std::vector<Output> towers;
  for (int64_t tower = 0; tower < 2; ++tower) {
    const auto device = b_.deviceScope("/cpu:" + std::to_string(tower));
    const auto scope = b_.nameScope("tower" + std::to_string(tower));
    const Output own_x = b_.slice(x, {tower * 4, 0}, half);
    towers.push_back(gradientOf(b_, w, own_x, b_.slice(wanted, {tower * 4, 0}, {4, 2})));
  }
  const Output mean = b_.scale(b_.addN(towers), 0.5);
  Session session(graph_, devices_.all());
  Random random(1);
  const auto drawn = [&random](Shape shape) {
    Tensor tensor(DType::kFloat32, std::move(shape));
    for (float& element : tensor.as<float>()) element = random.uniform(-1.0f, 1.0f);
    return tensor;
  };
  const Tensor x_value = drawn(whole), wanted_value = drawn({8, 2});
  session.setVariable("w", drawn({3, 2}));
  const std::vector<Feed> feeds = {{"x", &x_value}, {"wanted", &wanted_value}};
  const auto both = session.run(feeds, std::vector{name(one), name(mean)});
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(both[0].as<float>()[i], both[1].as<float>()[i], 1e-6) << i;
    EXPECT_NE(both[0].as<float>()[i], 0) << i;
  }
  Tensor first(DType::kFloat32, half), second(DType::kFloat32, half);
  std::copy_n(x_value.data(), first.bytes(), first.data());
  std::copy_n(x_value.data() + first.bytes(), second.bytes(), second.data());
  const auto fed = session.run(
      std::vector<Feed>{
          {"wanted", &wanted_value}, {"tower0/Slice", &first}, {"tower1/Slice", &second}},
      std::vector{name(mean)});
  EXPECT_THAT(fed[0].as<float>(), ::testing::ElementsAreArray(both[1].as<float>()));
}

TEST_F(SessionTest, ThreadsShareASession) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  const Output doubled = b_.scale(x, 2);
  {
    const auto device = b_.deviceScope("/cpu:1");
    b_.scale(doubled, 5);
  }
  Session session(graph_, devices_.all());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&session, &wrong, t] {
      for (int i = 0; i < 30; ++i) {
        const float value = static_cast<float>(t * 100 + i);
        const Tensor fed = floats({1}, {value});
        const std::string fetch = t % 2 == 0 ? "Scale" : "Scale_1";
        const auto got = session.run(std::vector<Feed>{{"x", &fed}}, std::vector{fetch});
        if (got[0].as<float>()[0] != value * (t % 2 == 0 ? 2 : 10)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(session.counts().steps, 120u);
  EXPECT_EQ(session.counts().plans, 2u);
}

}  // namespace
}  // namespace dtf::engine
