// Initial values and counters of a session; session_test.cc has the rest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/arena/initial_value.h"
#include "common/engine/session.h"
#include "tests/unit/engine/devices.h"

namespace dtf::engine {
namespace {

using graph::Output;
using ::testing::ElementsAre;

class SessionVariablesTest : public ::testing::Test {
 protected:
  float run1(Session& session, const std::string& fetch) {
    return session.run({}, std::vector{fetch}).at(0).as<float>()[0];
  }
  std::string name(Output output) const { return graph_.node(output.node).name; }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
};

TEST_F(SessionVariablesTest, InitializersGiveTheValuesOfAJobOnEachVariablesDevice) {
  b_.variable("first", {4, 3}, "glorot_uniform");
  {
    const auto there = b_.deviceScope("/cpu:1");
    b_.variable("second", {5}, "random_normal=2");
  }
  b_.node("Variable", {},
          {{"shape", Shape{5}},
           {"initializer", std::string("random_normal=2")},
           {"stream", int64_t{2}}},
          "copy");
  b_.node("Variable", {},
          {{"shape", Shape()}, {"dtype", DType::kInt64}, {"initializer", std::string("zeros")}},
          "count");
  const testing::Devices devices(testing::cpusOfWorker0(2));
  Session session(graph_, devices.all());
  EXPECT_THAT(session.uninitialized(), ElementsAre("first", "second", "copy", "count"));
  session.initialize(42);
  EXPECT_TRUE(session.uninitialized().empty());
  EXPECT_EQ(session.counts().steps, 0u) << "steps of run() alone are counted";
  const std::vector<std::string> all = {"first", "second", "copy", "count"};
  const std::vector<Tensor> values = session.run({}, all);
  const Tensor first = arena::initialValue("glorot_uniform", {4, 3}, 42, 0);
  const Tensor second = arena::initialValue("random_normal=2", {5}, 42, 1);
  EXPECT_TRUE(std::ranges::equal(values[0].as<float>(), first.as<float>()));
  EXPECT_TRUE(std::ranges::equal(values[1].as<float>(), second.as<float>()));
  EXPECT_TRUE(std::ranges::equal(values[2].as<float>(), second.as<float>())) << "by its stream";
  EXPECT_EQ(values[3].as<int64_t>()[0], 0);
}

TEST_F(SessionVariablesTest, AGraphWithoutVariablesIsInitialized) {
  const Output x = b_.constant({2}, 1);
  const testing::Devices devices(testing::cpusOfWorker0(1));
  Session session(graph_, devices.all());
  session.initialize(1);
  EXPECT_TRUE(session.uninitialized().empty());
  EXPECT_EQ(run1(session, name(x)), 1);
}

// A counter as the input of a program, and as the value of a step.
TEST_F(SessionVariablesTest, ACounterIsComputedWith) {
  const Output count{
      b_.node("Variable", {},
              {{"shape", Shape()}, {"dtype", DType::kInt64}, {"initializer", std::string("zeros")}},
              "count")};
  const Output add{b_.node("AssignAdd", {count, b_.constant({}, 3, DType::kInt64)})};
  const Output half = b_.scale(b_.cast(count, DType::kFloat32), 0.5);
  const Output twice = b_.scale(b_.cast(add, DType::kFloat32), 2);
  const testing::Devices devices(testing::cpusOfWorker0(1));
  Session session(graph_, devices.all());
  session.initialize(1);
  EXPECT_EQ(run1(session, name(twice)), 6);
  EXPECT_EQ(run1(session, name(half)), 1.5F);
}

}  // namespace
}  // namespace dtf::engine
