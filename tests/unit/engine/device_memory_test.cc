// Sessions on devices with memory of their own: feeds, fetches, copies between devices and values
// that outlive a step are the same as on CPUs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "common/base/error.h"
#include "common/engine/session.h"
#include "common/graph/autodiff.h"
#include "tests/unit/engine/devices.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/random_graph.h"

namespace dtf::engine {
namespace {

using graph::NodeId;
using graph::Output;
using graph::testing::errorText;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TaskId kWorker{JobKind::kWorker, 0};

Tensor valuesOf(Shape shape, const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

// Two CPUs and two GPUs; a node without a device goes to the first CPU.
class DeviceMemoryTest : public ::testing::Test {
 protected:
  DeviceMemoryTest() {
    ::setenv("DTF_TEST_HOST_DEVICES", "2", 1);
    devices_ = std::make_unique<testing::Devices>(std::vector<graph::DeviceName>{
        graph::fullDevice(kWorker), graph::fullDevice(kWorker, "CPU", 1),
        graph::fullDevice(kWorker, "GPU", 0), graph::fullDevice(kWorker, "GPU", 1)});
  }
  ~DeviceMemoryTest() override { ::unsetenv("DTF_TEST_HOST_DEVICES"); }

  auto on(const char* device) { return b_.deviceScope(device); }
  std::string name(Output output) const { return graph_.node(output.node).name; }
  static void expectNothingOnItsWay(const Session& session) {
    const RendezvousLoad load = session.load();
    EXPECT_EQ(load.steps + load.parked + load.waiting, 0u);
  }
  static std::vector<float> first(const std::vector<Tensor>& values) {
    std::vector<float> firsts;
    for (const Tensor& value : values) firsts.push_back(value.as<float>()[0]);
    return firsts;
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  std::unique_ptr<testing::Devices> devices_;
};

TEST_F(DeviceMemoryTest, RandomGraphsComputeTheSameAsOnOneCpu) {
  for (uint64_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed), same(seed);
    const auto cut =
        graph::testing::makeRandomGraph(random, 40, {"", "/gpu:0", "/cpu:1", "/gpu:1"});
    const auto whole = graph::testing::makeRandomGraph(same, 40, std::vector(4, std::string()));
    Session here(whole.graph, devices_->all()), spread(cut.graph, devices_->all());
    std::vector<Tensor> values;
    std::vector<Feed> feeds;
    values.reserve(whole.feeds.size());
    for (const auto& [output, elements] : whole.feeds) {
      const graph::Node& source = whole.graph.node(output.node);
      values.push_back(valuesOf(source.outputs[0].shape, {elements.begin(), elements.end()}));
      if (source.op != "Variable") feeds.push_back({source.name, &values.back()});
      if (source.op == "Variable")
        for (Session* const session : {&here, &spread})
          session->setVariable(source.name, values.back());
    }
    std::vector<std::string> fetches;
    for (const Output& tensor : whole.tensors)
      fetches.push_back(whole.graph.node(tensor.node).name);
    const auto expected = here.run(feeds, fetches);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto actual = spread.run(feeds, fetches);
      for (size_t i = 0; i < fetches.size(); ++i)
        EXPECT_THAT(actual[i].as<float>(),
                    ::testing::Pointwise(::testing::FloatNear(1e-4f), expected[i].as<float>()))
            << fetches[i];
    }
    expectNothingOnItsWay(spread);
  }
}

// From a GPU to the other, to a CPU, and back.
TEST_F(DeviceMemoryTest, ATensorPassesBetweenDevicesOfAnyKind) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1 << 12});
  Output value = x;
  for (const char* device : {"/gpu:0", "/gpu:1", "/cpu:1", "/gpu:0", "/gpu:0", "/cpu:0"}) {
    const auto there = on(device);
    value = b_.scale(value, 2);
  }
  Session session(graph_, devices_->all());
  Tensor ones(DType::kFloat32, {1 << 12});
  for (const float said : {1.0f, 3.0f}) {
    std::fill(ones.as<float>().begin(), ones.as<float>().end(), said);
    const auto fetched = session.run(std::vector<Feed>{{"x", &ones}}, std::vector{name(value)});
    EXPECT_THAT(fetched[0].as<float>(), Each(64 * said));
  }
  expectNothingOnItsWay(session);
}

TEST_F(DeviceMemoryTest, AVariableOfAGpuIsReadAndAssignedThere) {
  const auto gpu = on("/gpu:0");
  const Output w = b_.variable("w", {2});
  const Output x = b_.placeholder("x", DType::kFloat32, {2});
  const NodeId add = b_.node("AssignAdd", {w, x}, {}, "add");
  b_.node("ReadVariable", {w}, {}, "end", {add});
  b_.node("Assign", {w, x}, {}, "init");
  Session session(graph_, devices_->all());
  const Tensor two = valuesOf({2}, {2, 2}), five = valuesOf({2}, {5, 5});
  const std::vector<Feed> fed_two = {{"x", &two}}, fed_five = {{"x", &five}};
  EXPECT_THAT(errorText([&] { session.run(fed_two, std::vector<std::string>{"w"}); }),
              HasSubstr("'w' has no value yet"));
  session.run(fed_five, {}, std::vector<std::string>{"init"});
  EXPECT_THAT(first(session.run(fed_two, std::vector<std::string>{"w", "add", "end"})),
              ElementsAre(5, 7, 7));
  EXPECT_THAT(first(session.run(fed_two, std::vector<std::string>{"end", "w"})), ElementsAre(9, 7));
  session.setVariable("w", two);
  EXPECT_THAT(first(session.run({}, std::vector<std::string>{"w"})), ElementsAre(2));
}

TEST_F(DeviceMemoryTest, RowsOfATableOnAGpuAreUpdated) {
  const auto gpu = on("/gpu:1");
  const Output table = b_.variable("table", {3, 2});
  const Output indices = b_.placeholder("indices", DType::kInt32, {2});
  const Output updates = b_.placeholder("updates", DType::kFloat32, {2, 2});
  b_.node("ScatterAdd", {table, indices, updates}, {}, "add");
  Session session(graph_, devices_->all());
  session.setVariable("table", valuesOf({3, 2}, {1, 1, 1, 1, 1, 1}));
  Tensor rows(DType::kInt32, {2});
  rows.as<int32_t>()[0] = 2;
  rows.as<int32_t>()[1] = 0;
  const Tensor values = valuesOf({2, 2}, {1, 2, 10, 20});
  const std::vector<Feed> feeds = {{"indices", &rows}, {"updates", &values}};
  const auto given = session.run(feeds, std::vector<std::string>{"add"});
  EXPECT_THAT(given[0].as<float>(), ElementsAre(11, 21, 1, 1, 2, 3));
  rows.as<int32_t>()[0] = 3;
  EXPECT_THAT(errorText([&] { session.run(feeds, std::vector<std::string>{"add"}); }),
              HasSubstr("3"));
  const auto kept = session.run({}, std::vector<std::string>{"table"});
  EXPECT_EQ(kept[0].as<float>()[2], 1) << "no row was meant";
}

// One half of a batch is on a GPU, the other on a CPU: their mean gradient equals the whole
// batch's.
TEST_F(DeviceMemoryTest, TowersOfBothKindsGiveTheGradientOfTheWholeBatch) {
  const Output x = b_.placeholder("x", DType::kFloat32, {8, 3});
  const Output wanted = b_.placeholder("wanted", DType::kFloat32, {8, 2});
  const Output w = b_.variable("w", {3, 2});
  const auto gradientOf = [&](Output in, Output out) {
    const Output loss = b_.mean(b_.squaredDifference(b_.tanh(b_.matMul(in, w)), out));
    return graph::addGradients(graph_, loss, std::array{w})[0];
  };
  const Output one = gradientOf(x, wanted);
  std::vector<Output> towers;
  for (int64_t tower = 0; tower < 2; ++tower) {
    const auto there = on(tower == 0 ? "/gpu:0" : "/cpu:1");
    towers.push_back(
        gradientOf(b_.slice(x, {tower * 4, 0}, {4, 3}), b_.slice(wanted, {tower * 4, 0}, {4, 2})));
  }
  const Output mean = b_.scale(b_.addN(towers), 0.5);
  Session session(graph_, devices_->all());
  Random random(1);
  const auto drawn = [&random](Shape shape) {
    Tensor tensor(DType::kFloat32, std::move(shape));
    for (float& element : tensor.as<float>()) element = random.uniform(-1.0f, 1.0f);
    return tensor;
  };
  const Tensor x_value = drawn({8, 3}), wanted_value = drawn({8, 2});
  session.setVariable("w", drawn({3, 2}));
  const auto both = session.run(std::vector<Feed>{{"x", &x_value}, {"wanted", &wanted_value}},
                                std::vector{name(one), name(mean)});
  EXPECT_THAT(both[1].as<float>(),
              ::testing::Pointwise(::testing::FloatNear(1e-6f), both[0].as<float>()));
}

TEST_F(DeviceMemoryTest, WhatAKernelOfAGpuReportsEndsThatStepAlone) {
  const Output logits = b_.placeholder("logits", DType::kFloat32, {2, 3});
  const Output labels = b_.placeholder("labels", DType::kInt32, {2});
  Output loss;
  {
    const auto gpu = on("/gpu:0");
    loss = b_.sparseSoftmaxCrossEntropy(logits, labels).loss;
  }
  const Output there = b_.scale(loss, 2);
  Session session(graph_, devices_->all());
  const Tensor even = valuesOf({2, 3}, {0, 0, 0, 0, 0, 0});
  Tensor said(DType::kInt32, {2});
  const std::vector<Feed> feeds = {{"logits", &even}, {"labels", &said}};
  const auto run = [&] { return first(session.run(feeds, std::vector{name(there)})); };
  EXPECT_NEAR(run()[0], 2 * std::log(3.0f), 1e-5);
  said.as<int32_t>()[1] = 7;
  EXPECT_THAT(errorText(run), HasSubstr("7"));
  said.as<int32_t>()[1] = 2;
  EXPECT_NEAR(run()[0], 2 * std::log(3.0f), 1e-5);
  expectNothingOnItsWay(session);
}

TEST_F(DeviceMemoryTest, WhatIsFedConstantOrAVariableIsFetchedAsItIs) {
  const auto gpu = on("/gpu:0");
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  b_.node("Identity", {x}, {}, "same");
  b_.node("Identity", {b_.constant({1}, 4)}, {}, "four");
  const Output w = b_.variable("w", {1});
  b_.node("Identity", {w}, {}, "kept");
  Session session(graph_, devices_->all());
  session.setVariable("w", valuesOf({1}, {9}));
  const Tensor two = valuesOf({1}, {2});
  EXPECT_THAT(first(session.run(std::vector<Feed>{{"x", &two}},
                                std::vector<std::string>{"x", "same", "four", "kept"})),
              ElementsAre(2, 2, 4, 9));
}

}  // namespace
}  // namespace dtf::engine
