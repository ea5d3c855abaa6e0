#include "common/engine/registered_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <latch>

#include "common/engine/local_tasks.h"
#include "common/engine/rendezvous.h"
#include "tests/unit/engine/devices.h"
#include "tests/unit/graph/error_text.h"

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
  VariableStore variables;
  QueueStore queues;
  RegisteredPart registered(std::move(part), threads.devices(), 5, variables, queues);
  EXPECT_EQ(registered.ownEdges(), 1u);
  ASSERT_EQ(registered.feeds().size(), 1u);
  Rendezvous rendezvous;
  const float two = 2, ten = 10;
  const Bytes x = std::as_bytes(std::span(&two, 1)), w = std::as_bytes(std::span(&ten, 1));
  variables.use({threads.names()[1].str(), "", "w"}, {DType::kFloat32, {1}}, "w")->set(w);
  for (uint64_t step = 1; step < 3; ++step) {
    std::vector<StepPart> parts;
    registered.addStep(std::vector{x}, parts);
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].program->receives().size() + parts[1].program->receives().size(), 1u);
    EXPECT_EQ(parts[1].program->receives()[0].edge, 5u) << "after those of the plan";
    testing::runToEnd({step, {1}}, parts, rendezvous);
    EXPECT_EQ(*reinterpret_cast<const float*>(registered.fetch(0, parts).data()), 50);
    EXPECT_EQ(*reinterpret_cast<const float*>(registered.fetch(1, parts).data()), 5);
  }
}

// There is room for one value: the step releases the old value before the assignment, unless its
// end needs that value.
TEST(RegisteredPart, AVariableThatNobodyReadsAnyMoreIsAssignedInPlace) {
  testing::Devices devices(testing::cpusOfWorker0(1));
  const DeviceThreads threads(devices.all());
  for (const bool is_fetched : {false, true}) {
    TaskPart part{.task = kSelf,
                  .graph = graph::Graph(graph::standardOps()),
                  .fetches = {},
                  .feeds = {},
                  .folded = {},
                  .edges = {},
                  .edges_total = 0};
    graph::Builder b(part.graph);
    const auto device = b.deviceScope(graph::fullDevice(kSelf).str());
    const Output w = b.variable("w", {2});
    const Output sub{b.node("AssignSub", {w, b.scale(w, 0.5)})};
    part.fetches = {is_fetched ? b.reshape(w, {1, 2}) : sub};
    VariableStore variables(1, 2 * sizeof(float));
    QueueStore queues;
    RegisteredPart registered(std::move(part), threads.devices(), 0, variables, queues);
    const std::vector<float> eights = {8, 8};
    variables.use({threads.names()[0].str(), "", "w"}, {DType::kFloat32, {2}}, "w")
        ->set(std::as_bytes(std::span(eights)));
    Rendezvous rendezvous;
    std::vector<StepPart> parts;
    registered.addStep({}, parts);
    const auto run = [&] { testing::runToEnd({1, {1}}, parts, rendezvous); };
    if (is_fetched) {
      EXPECT_THAT(graph::testing::errorText(run), ::testing::HasSubstr("no room"));
    } else {
      run();
      EXPECT_EQ(*reinterpret_cast<const float*>(registered.fetch(0, parts).data()), 4);
    }
  }
}

// A task registers the parts of all its sessions in one thread: a step of one session must not
// block it.
TEST(RegisteredPart, IsMadeWhileItsDeviceIsBusy) {
  testing::Devices devices(testing::cpusOfWorker0(1));
  const DeviceThreads threads(devices.all());
  TaskPart part{.task = kSelf,
                .graph = graph::Graph(graph::standardOps()),
                .fetches = {},
                .feeds = {},
                .folded = {},
                .edges = {},
                .edges_total = 0};
  graph::Builder b(part.graph);
  const auto device = b.deviceScope(graph::fullDevice(kSelf).str());
  part.fetches = {b.constant({2}, 7)};
  VariableStore variables;
  QueueStore queues;
  std::latch busy(1), go_on(1);
  threads.devices().begin()->second.queue->post([&] {
    busy.count_down();
    go_on.wait();
  });
  busy.wait();
  auto made = std::async(std::launch::async, [&] {
    return std::make_unique<RegisteredPart>(std::move(part), threads.devices(), 0, variables,
                                            queues);
  });
  const bool was_made = made.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  go_on.count_down();
  ASSERT_TRUE(was_made) << "it waited for the device";
  const auto registered = made.get();
  Rendezvous rendezvous;
  for (uint64_t step = 1; step < 3; ++step) {
    std::vector<StepPart> parts;
    registered->addStep({}, parts);
    testing::runToEnd({step, {1}}, parts, rendezvous);
    EXPECT_EQ(*reinterpret_cast<const float*>(registered->fetch(0, parts).data()), 7);
  }
}

// Only a client may send a graph with such an edge; dtf makes none.
TEST(RegisteredPart, ASourceMayWaitForWhatCantDelayIt) {
  testing::Devices devices(testing::cpusOfWorker0(1));
  const DeviceThreads threads(devices.all());
  TaskPart part{.task = kSelf,
                .graph = graph::Graph(graph::standardOps()),
                .fetches = {},
                .feeds = {"x", "late"},
                .folded = {},
                .edges = {},
                .edges_total = 0};
  graph::Builder b(part.graph);
  const auto device = b.deviceScope(graph::fullDevice(kSelf).str());
  const Output first{b.node("Tanh", {b.placeholder("x", DType::kFloat32, {1})})};
  part.graph.addNode({.name = "late",
                      .op = "Placeholder",
                      .inputs = {},
                      .attributes = {{"dtype", DType::kFloat32}, {"shape", Shape{1}}},
                      .control_inputs = {first.node},
                      .device = graph::fullDevice(kSelf).str()});
  part.fetches = {b.scale({part.graph.find("late")->id}, 3)};
  VariableStore variables;
  QueueStore queues;
  RegisteredPart registered(std::move(part), threads.devices(), 0, variables, queues);
  const float two = 2;
  const Bytes bytes = std::as_bytes(std::span(&two, 1));
  std::vector<StepPart> parts;
  registered.addStep(std::vector{bytes, bytes}, parts);
  Rendezvous rendezvous;
  testing::runToEnd({1, {1}}, parts, rendezvous);
  EXPECT_EQ(*reinterpret_cast<const float*>(registered.fetch(0, parts).data()), 6);
}

}  // namespace
}  // namespace dtf::engine
