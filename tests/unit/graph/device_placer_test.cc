#include "common/graph/device_placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using ::testing::AllOf;
using testing::errorText;
using ::testing::HasSubstr;
using ::testing::Not;

// ps/0 has a CPU, worker/0 two, worker/1 a CPU and a GPU.
class DevicePlacerTest : public ::testing::Test {
 protected:
  static constexpr TaskId kPs0{JobKind::kPs, 0};
  static constexpr TaskId kWorker0{JobKind::kWorker, 0};
  static constexpr TaskId kWorker1{JobKind::kWorker, 1};

  DevicePlacerTest() {
    options_.devices = {fullDevice(kPs0), fullDevice(kWorker0), fullDevice(kWorker0, "CPU", 1),
                        fullDevice(kWorker1), fullDevice(kWorker1, "GPU")};
    options_.preferred = fullDevice(kWorker0);
  }

  // Returns the device of a node that asks for `device`.
  std::string placed(const std::string& device) {
    const auto scope = b_.deviceScope(device);
    return deviceOf(b_.constant({1}, 1));
  }
  std::string deviceOf(Output output) {
    return placeOnDevices(graph_, options_).device(output.node).str();
  }
  std::string error() {
    return errorText([this] { placeOnDevices(graph_, options_); });
  }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  DevicePlacerOptions options_;
};

TEST_F(DevicePlacerTest, WhatAConstraintLeavesOpenIsThePreferredDevice) {
  EXPECT_EQ(placed(""), fullDevice(kWorker0).str());
  EXPECT_EQ(placed("/cpu:1"), fullDevice(kWorker0, "CPU", 1).str());
  EXPECT_EQ(placed("/job:ps"), fullDevice(kPs0).str());
  EXPECT_EQ(placed("/task:1"), fullDevice(kWorker1).str()) << "on the preferred job";
  EXPECT_EQ(placed("/job:worker/task:1/device:GPU:0"), fullDevice(kWorker1, "GPU").str());
  EXPECT_EQ(placed("/device:GPU"), fullDevice(kWorker1, "GPU").str()) << "where there is one";
}

TEST_F(DevicePlacerTest, NestedScopesMergeFieldByField) {
  const auto outer = b_.deviceScope("/job:worker/task:1/cpu:0");
  const auto inner = b_.deviceScope("/device:GPU:0");
  EXPECT_EQ(deviceOf(b_.constant({1}, 1)), fullDevice(kWorker1, "GPU").str());
}

TEST_F(DevicePlacerTest, ThePreferredDeviceMayBeAnyOne) {
  options_.preferred = fullDevice(kWorker0, "CPU", 1);
  EXPECT_EQ(placed(""), fullDevice(kWorker0, "CPU", 1).str());
  EXPECT_EQ(placed("/task:1"), fullDevice(kWorker1).str()) << "which has no second CPU";
}

TEST_F(DevicePlacerTest, AnUnknownDeviceIsNamedWithItsNodeItsLineAndThoseThereAre) {
  {
    const auto scope = b_.deviceScope("/job:worker/task:0/device:GPU:0");
    b_.node("Const", {}, {{"dtype", DType::kFloat32}, {"shape", Shape()}, {"value", 1.0}}, "c");
  }
  options_.lines["c"] = "model.yaml:12:5";
  EXPECT_THAT(error(), AllOf(HasSubstr("model.yaml:12:5: node 'c' (Const)"),
                             HasSubstr("there is no device /job:worker/task:0/device:GPU:0"),
                             HasSubstr(fullDevice(kPs0).str()),
                             HasSubstr(fullDevice(kWorker1, "GPU").str())));
}

TEST_F(DevicePlacerTest, AConstraintThatIsNotUnderstoodIsNamedWithItsNode) {
  graph_.addNode({.name = "c",
                  .op = "NoOp",
                  .inputs = {},
                  .attributes = {},
                  .control_inputs = {},
                  .device = "/gadget:0"});
  EXPECT_THAT(error(), AllOf(HasSubstr("node 'c'"), HasSubstr("gadget")));
}

TEST_F(DevicePlacerTest, ADeviceWithoutAKernelIsRefusedWithThoseThatHaveOne) {
  options_.can_run = [](const Node& node, const DeviceName& device) {
    return node.op != "Tanh" || device.type == "CPU";
  };
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  const auto scope = b_.deviceScope("/task:1/device:GPU:0");
  b_.tanh(x);
  EXPECT_THAT(error(), AllOf(HasSubstr("'Tanh' (Tanh)"), HasSubstr("has no kernel for it"),
                             HasSubstr(fullDevice(kWorker1).str())));
}

TEST_F(DevicePlacerTest, WithoutAConstraintADeviceThatHasAKernelIsFound) {
  options_.preferred = fullDevice(kWorker1, "GPU");
  options_.can_run = [](const Node&, const DeviceName& device) { return device.type == "CPU"; };
  EXPECT_EQ(placed(""), fullDevice(kWorker1).str()) << "on the same task";
}

TEST_F(DevicePlacerTest, SoftPlacementIsForHardwareOnlyAndOnlyWhenAskedFor) {
  const auto gpu = b_.deviceScope("/job:worker/task:0/device:GPU:7");
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  EXPECT_THAT(error(), HasSubstr("there is no device"));
  options_.soft = true;
  EXPECT_EQ(deviceOf(x), fullDevice(kWorker0).str());
  const auto elsewhere = b_.deviceScope("/task:9");
  b_.tanh(x);
  EXPECT_THAT(error(), HasSubstr("there is no device /job:worker/task:9"));
}

TEST_F(DevicePlacerTest, ColocatedNodesMeetTheConstraintsOfAllOfThem) {
  const auto named = [this](const std::string& name, const std::string& device) {
    const auto scope = b_.deviceScope(device);
    return b_.placeholder(name, DType::kFloat32, {1});
  };
  const Output a = named("a", "/task:1"), b = named("b", ""), c = named("c", "/device:GPU:0");
  options_.colocations = {{"a", "b"}, {"c", "b"}};
  for (const Output& each : {a, b, c}) {
    EXPECT_EQ(deviceOf(each), fullDevice(kWorker1, "GPU").str());
  }
}

TEST_F(DevicePlacerTest, ColocatedNodesThatContradictEachOtherAreNamed) {
  {
    const auto scope = b_.deviceScope("/cpu:1");
    b_.placeholder("a", DType::kFloat32, {1});
  }
  {
    const auto scope = b_.deviceScope("/cpu:0");
    b_.placeholder("b", DType::kFloat32, {1});
  }
  options_.colocations = {{"b", "a"}};
  EXPECT_THAT(error(), AllOf(HasSubstr("node 'b'"), HasSubstr("where 'a' is"),
                             HasSubstr("/device:CPU:1"), HasSubstr("/device:CPU:0")));
  options_.soft = true;
  EXPECT_EQ(deviceOf({graph_.find("b")->id}), fullDevice(kWorker0, "CPU", 1).str())
      << "the one that was joined gives in";
  options_.colocations = {{"b", "nobody"}};
  EXPECT_THAT(error(), HasSubstr("nobody"));
}

TEST_F(DevicePlacerTest, AnUpdateHappensWhereTheVariableIsWhateverItAsksFor) {
  const Output w = [this] {
    const auto scope = b_.deviceScope("/job:ps");
    return b_.variable("w", {1});
  }();
  const auto scope = b_.deviceScope("/task:1/device:GPU:0");
  const NodeId update = b_.applyGradient(w, b_.scale(w, 2));
  EXPECT_EQ(deviceOf({update}), fullDevice(kPs0).str());
  const NodeId add = b_.node("AssignAdd", {w, b_.scale(w, 2)});
  const NodeId read = b_.node("ReadVariable", {w});
  EXPECT_EQ(deviceOf({add}), fullDevice(kPs0).str());
  EXPECT_EQ(deviceOf({read}), fullDevice(kPs0).str());
  EXPECT_EQ(placeOnDevices(graph_, options_).variable(w.node)->name, "w");
}

TEST_F(DevicePlacerTest, AnUpdateOfNoVariableIsRefused) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  b_.applyGradient(x, x);
  EXPECT_THAT(error(), AllOf(HasSubstr("ApplyGradient"), HasSubstr("must be a Variable")));
}

TEST_F(DevicePlacerTest, SlotsAreWhereTheirVariableIs) {
  Output w;
  {
    const auto there = b_.deviceScope("/job:ps/task:0");
    w = b_.variable("w", {2});
  }
  const Output slot = b_.variable("slot", {2}), x = b_.constant({2}, 1);
  const NodeId update = b_.node("ApplyOptimizer", {w, slot, x, b_.constant({}, 0, DType::kInt64)},
                                {{"optimizer", std::string("momentum")}}, "update");
  const Placement placed = placeOnDevices(graph_, options_);
  EXPECT_EQ(placed.device(slot.node), placed.device(w.node));
  EXPECT_EQ(placed.device(update), placed.device(w.node));
  b_.node("ApplyOptimizer", {w, x, x, b_.constant({}, 0, DType::kInt64)},
          {{"optimizer", std::string("momentum")}}, "other");
  EXPECT_THAT(error(), AllOf(HasSubstr("'other' (ApplyOptimizer)"), HasSubstr("slot")));
}

TEST_F(DevicePlacerTest, AnAssignmentToNoVariableIsRefused) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  b_.node("Assign", {x, x}, {}, "set");
  EXPECT_THAT(error(), AllOf(HasSubstr("'set' (Assign)"), HasSubstr("must be a Variable")));
}

TEST_F(DevicePlacerTest, TheGraphGetsTheDevicesInFull) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  b_.node("NoOp", {}, {}, "after", {x.node});
  const Graph placed = withDevices(graph_, placeOnDevices(graph_, options_));
  EXPECT_EQ(placed.find("x")->device, fullDevice(kWorker0).str());
  EXPECT_EQ(placed.find("after")->control_inputs, graph_.find("after")->control_inputs);
  EXPECT_THAT(graph_.find("x")->device, Not(HasSubstr("job")));
}

}  // namespace
}  // namespace dtf::graph
