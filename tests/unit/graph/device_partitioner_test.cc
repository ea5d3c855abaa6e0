#include "common/graph/device_partitioner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/graph/device_placer.h"
#include "common/graph/op_def.h"
#include "common/graph/partitioner.h"
#include "tests/unit/graph/parts.h"
#include "tests/unit/graph/random_graph.h"

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::nodesOf;
using testing::Values;

const std::string kCpu0 = "/job:worker/replica:0/task:0/device:CPU:0";
const std::string kCpu1 = "/job:worker/replica:0/task:0/device:CPU:1";
const std::string kElsewhere = "/job:worker/replica:0/task:1/device:CPU:0";

// Cuts the graph by task, then each part by device.
std::map<std::string, Graph> partitionTwice(const Graph& graph) {
  DevicePlacerOptions options;
  for (const std::string& device : {kCpu0, kCpu1, kElsewhere}) {
    options.devices.push_back(DeviceName::parse(device));
  }
  options.preferred = options.devices[0];
  std::map<std::string, Graph> all;
  for (const auto& [task, part] : partition(graph, placeOnDevices(graph, options))) {
    for (auto& [device, piece] : partitionByDevice(part)) all.emplace(device, std::move(piece));
  }
  return all;
}

class DevicePartitionerTest : public ::testing::Test {
 protected:
  std::map<std::string, Graph> split() { return partitionTwice(graph_); }

  Graph graph_{standardOps()};
  Builder b_{graph_};
};

TEST_F(DevicePartitionerTest, OneSendServesFiveReadersOnADevice) {
  const Output a = b_.placeholder("a", DType::kFloat32, {2});
  const auto device = b_.deviceScope("/cpu:1");
  for (int i = 0; i < 5; ++i) b_.scale(a, i);
  const auto parts = split();
  ASSERT_EQ(parts.size(), 2u);
  const auto sends = nodesOf(parts.at(kCpu0), "_Send");
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0]->name, "a:0/send_to_cpu_1");
  const auto recvs = nodesOf(parts.at(kCpu1), "_Recv");
  ASSERT_EQ(recvs.size(), 1u);
  EXPECT_EQ(recvs[0]->name, "a:0/recv_on_cpu_1");
  EXPECT_EQ(recvs[0]->attribute<std::string>("key"), kCpu0 + ";" + kCpu1 + ";a:0;0:0");
  EXPECT_EQ(sends[0]->attribute<std::string>("key"), recvs[0]->attribute<std::string>("key"));
  EXPECT_EQ(nodesOf(parts.at(kCpu1), "Scale").size(), 5u);
}

TEST_F(DevicePartitionerTest, ATensorOfAnotherTaskComesOnceAndGoesOnFromThere) {
  const Output a = [this] {
    const auto device = b_.deviceScope("/task:1");
    return b_.placeholder("a", DType::kFloat32, {2});
  }();
  b_.scale(a, 1);
  const auto device = b_.deviceScope("/cpu:1");
  b_.scale(a, 2);
  b_.scale(a, 3);
  const auto parts = split();
  EXPECT_EQ(nodesOf(parts.at(kElsewhere), "_Send").size(), 1u) << "between the tasks";
  const Node& arrives = *nodesOf(parts.at(kCpu0), "_Recv").at(0);
  const Node& goes_on = *nodesOf(parts.at(kCpu0), "_Send").at(0);
  EXPECT_THAT(goes_on.inputs, ElementsAre(Output{arrives.id}));
  EXPECT_EQ(nodesOf(parts.at(kCpu1), "_Recv").size(), 1u);
}

TEST_F(DevicePartitionerTest, ACrossingControlEdgeBecomesOneScalar) {
  const Output a = b_.placeholder("a", DType::kFloat32, {2});
  const NodeId first = b_.node("NoOp", {}, {}, "first", {a.node});
  const auto device = b_.deviceScope("/cpu:1");
  b_.node("NoOp", {}, {}, "second", {first});
  b_.node("NoOp", {}, {}, "third", {first});
  const auto parts = split();
  const auto sends = nodesOf(parts.at(kCpu0), "_Send");
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_THAT(sends[0]->attribute<std::string>("key"), HasSubstr(";^first;"));
  const Node& done = parts.at(kCpu0).node(sends[0]->inputs[0].node);
  EXPECT_THAT(done.control_inputs, ElementsAre(parts.at(kCpu0).find("first")->id));
  const auto recvs = nodesOf(parts.at(kCpu1), "_Recv");
  ASSERT_EQ(recvs.size(), 1u);
  for (const char* waiting : {"second", "third"}) {
    EXPECT_THAT(parts.at(kCpu1).find(waiting)->control_inputs, ElementsAre(recvs[0]->id));
  }
}

TEST_F(DevicePartitionerTest, ATaskWithOneDeviceStaysWhole) {
  b_.tanh(b_.placeholder("a", DType::kFloat32, {2}));
  const auto parts = split();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts.at(kCpu0).nodes().size(), 2u);
}

std::string describe(const std::map<std::string, Graph>& parts) {
  std::string text;
  for (const auto& [device, graph] : parts) {
    for (const Node& node : graph.nodes()) {
      text += device + " " + node.name + " " + node.op;
      for (const Output& input : node.inputs) text += " " + graph.node(input.node).name;
      for (const NodeId before : node.control_inputs) text += " ^" + graph.node(before).name;
      text += "\n";
    }
  }
  return text;
}

TEST(DevicePartitioner, RandomGraphsComputeTheSameInPiecesAndAreCutAlikeEverywhere) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed), same(seed);
    const std::vector<std::string> devices = {"", "/cpu:1", "/task:1"};
    const testing::RandomGraph whole = testing::makeRandomGraph(random, 40, devices);
    const auto parts = partitionTwice(whole.graph);
    EXPECT_EQ(describe(parts),
              describe(partitionTwice(testing::makeRandomGraph(same, 40, devices).graph)));
    std::map<std::string, Values> sources;
    for (const auto& [output, values] : whole.feeds) {
      sources[whole.graph.node(output.node).name] = values;
    }
    std::multiset<std::string> sent, received;
    for (const auto& [device, graph] : parts) {
      for (const Node* node : nodesOf(graph, "_Send")) {
        sent.insert(node->attribute<std::string>("key"));
      }
      for (const Node* node : nodesOf(graph, "_Recv")) {
        received.insert(node->attribute<std::string>("key"));
      }
    }
    EXPECT_EQ(sent, received);
    EXPECT_EQ(std::set<std::string>(sent.begin(), sent.end()).size(), sent.size());
    testing::Together<std::string> together(parts, sources);
    for (const Output& tensor : whole.tensors) {
      const std::string& name = whole.graph.node(tensor.node).name;
      EXPECT_EQ(together.value(name), testing::evaluate(whole.graph, whole.feeds, tensor)) << name;
    }
  }
}

}  // namespace
}  // namespace dtf::graph
