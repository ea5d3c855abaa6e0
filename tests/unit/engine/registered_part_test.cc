#include "common/engine/registered_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/engine/local_tasks.h"
#include "common/engine/rendezvous.h"
#include "tests/unit/engine/devices.h"

namespace dtf::engine {
namespace {

using graph::Output;

constexpr TaskId kSelf{JobKind::kWorker, 0};

// (x + c) on cpu:0, times the variable w on cpu:1.
TEST(RegisteredPart, FeedsFoldedValuesAndVariablesReachTheirDevices) {
  testing::Devices devices(testing::cpusOfWorker0(2));
  const DeviceThreads threads(devices.all());
  TaskPart part{.task = kSelf,
                .graph = graph::Graph(graph::standardOps()),
                .fetches = {},
                .feeds = {"x"},
                .folded = {},
                .edges = {},
                .edges_total = 5};
  graph::Builder b(part.graph);
  {
    const auto device = b.deviceScope(graph::fullDevice(kSelf).str());
    b.add(b.placeholder("x", DType::kFloat32, {1}), b.placeholder("c", DType::kFloat32, {1}));
  }
  const Output sum{part.graph.find("Add")->id};
  const auto device = b.deviceScope(graph::fullDevice(kSelf, "CPU", 1).str());
  part.fetches = {b.mul(sum, b.variable("w", {1})), sum};
  part.folded.emplace("c", Tensor(DType::kFloat32, {1}));
  part.folded.at("c").as<float>()[0] = 3;
  RegisteredPart registered(std::move(part), threads.devices(), 5);
  EXPECT_EQ(registered.ownEdges(), 1u);
  EXPECT_THAT(registered.variables(), ::testing::ElementsAre("w"));
  ASSERT_EQ(registered.feeds().size(), 1u);
  Rendezvous rendezvous;
  const float two = 2, ten = 10;
  const Bytes x = std::as_bytes(std::span(&two, 1)), w = std::as_bytes(std::span(&ten, 1));
  for (uint64_t step = 1; step < 3; ++step) {
    std::vector<StepPart> parts;
    registered.addStep(std::vector{x}, std::vector{w}, parts);
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].program->receives().size() + parts[1].program->receives().size(), 1u);
    EXPECT_EQ(parts[1].program->receives()[0].edge, 5u) << "after those of the plan";
    runParts({step, {1}}, parts, rendezvous);
    EXPECT_EQ(*reinterpret_cast<const float*>(registered.fetch(0, parts).data()), 50);
    EXPECT_EQ(*reinterpret_cast<const float*>(registered.fetch(1, parts).data()), 5);
  }
}

}  // namespace
}  // namespace dtf::engine
