#include "common/engine/segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/random_graph.h"

namespace dtf::engine {
namespace {

using graph::Node;
using graph::NodeId;
using graph::Output;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SegmentsTest : public ::testing::Test {
 protected:
  static graph::Attributes attributes(const std::string& key) {
    return {{"key", key}, {"dtype", DType::kFloat32}, {"shape", Shape{2}}};
  }
  Output receive(const std::string& key) { return {b_.node("_Recv", {}, attributes(key), key)}; }
  NodeId send(Output x, const std::string& key) {
    return b_.node("_Send", {x}, attributes(key), key);
  }
  std::vector<std::string> names(const std::vector<NodeId>& nodes) const {
    std::vector<std::string> names;
    for (const NodeId node : nodes) names.push_back(graph_.node(node).name);
    return names;
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  Output x_ = b_.placeholder("x", DType::kFloat32, {2});
};

TEST_F(SegmentsTest, WithoutReceivesAndSendsThereIsOne) {
  const Output y = b_.tanh(b_.relu(x_));
  const auto segments = cutIntoSegments(graph_, {y});
  ASSERT_THAT(segments, SizeIs(1));
  EXPECT_THAT(names(segments[0].nodes), ElementsAre("Relu", "Tanh"));
  EXPECT_THAT(segments[0].results, ElementsAre(y));
  EXPECT_THAT(segments[0].receives, IsEmpty());
}

TEST_F(SegmentsTest, WhatASendNeedsRunsFirst) {
  const Output y = b_.relu(x_), rest = b_.tanh(y);
  send(y, "s");
  const auto segments = cutIntoSegments(graph_, {rest});
  ASSERT_THAT(segments, SizeIs(2));
  EXPECT_THAT(names(segments[0].nodes), ElementsAre("Relu"));
  EXPECT_THAT(names(segments[0].sends), ElementsAre("s"));
  EXPECT_THAT(segments[0].results, ElementsAre(y));
  EXPECT_THAT(names(segments[1].nodes), ElementsAre("Tanh"));
  EXPECT_THAT(segments[1].after, ElementsAre(0));
}

// y is sent, returns as z, and w needs both. A segment that awaited both arrivals at once would
// wait for itself on the other device.
TEST_F(SegmentsTest, NothingAwaitsMoreThanItNeeds) {
  const Output y = b_.relu(receive("y"));
  send(y, "to z");
  const Output w = b_.add(b_.tanh(receive("z")), y);
  const auto segments = cutIntoSegments(graph_, {w});
  ASSERT_THAT(segments, SizeIs(3));
  EXPECT_THAT(names(segments[0].receives), ElementsAre("y"));
  EXPECT_THAT(names(segments[1].receives), ElementsAre("z"));
  EXPECT_THAT(names(segments[1].nodes), ElementsAre("Tanh"));
  EXPECT_THAT(names(segments[2].nodes), ElementsAre("Add"));
  EXPECT_THAT(segments[2].receives, IsEmpty()) << "those before it have awaited them";
  EXPECT_THAT(segments[2].after, ElementsAre(0, 1));
}

TEST_F(SegmentsTest, WhatIsThereLeavesWithoutWaitingForPrograms) {
  send(x_, "fed");
  send(receive("r"), "passed on");
  send(b_.relu(x_), "computed");
  const auto segments = cutIntoSegments(graph_, {});
  ASSERT_THAT(segments, SizeIs(3));
  EXPECT_THAT(names(segments[0].sends), ElementsAre("fed"));
  EXPECT_THAT(segments[0].nodes, IsEmpty());
  EXPECT_THAT(names(segments[1].sends), ElementsAre("computed"));
  EXPECT_THAT(names(segments[2].sends), ElementsAre("passed on"));
  EXPECT_THAT(names(segments[2].receives), ElementsAre("r"));
}

TEST_F(SegmentsTest, WaitingIsANeedToo) {
  const Output arrived = receive("done elsewhere");
  const NodeId before = b_.node("NoOp", {}, {}, "before", {arrived.node});
  const NodeId after =
      b_.node("Const", {}, {{"dtype", DType::kFloat32}, {"shape", Shape()}, {"value", 0.0}},
              "after", {before});
  const auto segments = cutIntoSegments(graph_, {Output{after}});
  ASSERT_THAT(segments, SizeIs(1)) << "a Const that waits is no source";
  EXPECT_THAT(names(segments[0].nodes), ElementsAre("before", "after"));
  EXPECT_THAT(names(segments[0].receives), ElementsAre("done elsewhere"));
}

// The nodes before an action on a variable, the action, and the nodes after several of them are
// segments of their own.
TEST_F(SegmentsTest, ActsOnVariablesAreCutOut) {
  const Output v = b_.variable("v", {2}), w = b_.variable("w", {2});
  const Output y = b_.relu(x_);
  const Output add{b_.node("AssignAdd", {v, y}, {}, "add")};
  b_.node("Assign", {w, x_}, {}, "set");
  const Output z = b_.tanh(add);
  b_.node("Sigmoid", {x_}, {}, "after", {graph_.find("set")->id});
  b_.node("ReadVariable", {v}, {}, "read", {z.node});
  const auto segments = cutIntoSegments(graph_, {});
  ASSERT_THAT(segments, SizeIs(5));
  EXPECT_THAT(names(segments[0].nodes), ElementsAre("Relu"));
  EXPECT_THAT(segments[0].results, ElementsAre(y));
  EXPECT_EQ(segments[1].action, graph_.find("add")->id);
  EXPECT_THAT(segments[1].nodes, IsEmpty());
  EXPECT_THAT(segments[1].results, ElementsAre(add));
  EXPECT_THAT(segments[1].after, ElementsAre(0));
  EXPECT_EQ(segments[2].action, graph_.find("set")->id);
  EXPECT_THAT(segments[2].results, IsEmpty());
  EXPECT_THAT(names(segments[3].nodes), ElementsAre("Tanh", "after"));
  EXPECT_THAT(segments[3].after, ElementsAre(1, 2));
  EXPECT_EQ(segments[4].action, graph_.find("read")->id);
  EXPECT_THAT(segments[4].after, ElementsAre(3));
}

// Nodes behind one queue don't wait for another queue. Actions that never wait are ordered like
// actions on variables.
TEST_F(SegmentsTest, ActsOnQueuesAreWaitedForByWhatFollowsThemAlone) {
  const Output jobs{b_.node("FIFOQueue", {},
                            {{"component_types", std::string("float32")},
                             {"shapes", std::string("[2]")},
                             {"capacity", int64_t{4}}},
                            "jobs")};
  const Output one{b_.node("QueueDequeue", {jobs}, {}, "one")};
  const Output two{b_.node("QueueDequeue", {jobs}, {}, "two")};
  const Output y = b_.relu(one), z = b_.tanh(two);
  const Output size{b_.node("QueueSize", {jobs}, {}, "size")};
  b_.node("Identity", {size}, {}, "how many");
  b_.node("QueueEnqueue", {jobs, b_.add(y, z)}, {}, "put");
  const auto segments = cutIntoSegments(graph_, {});
  ASSERT_THAT(segments, SizeIs(8));
  EXPECT_EQ(segments[0].action, one.node);
  EXPECT_EQ(segments[1].action, two.node);
  EXPECT_EQ(segments[2].action, size.node);
  EXPECT_THAT(names(segments[3].nodes), ElementsAre("how many"));
  EXPECT_THAT(segments[3].after, ElementsAre(2));
  EXPECT_THAT(names(segments[4].nodes), ElementsAre("Relu"));
  EXPECT_THAT(segments[4].after, ElementsAre(0)) << "not after 'two'";
  EXPECT_THAT(names(segments[5].nodes), ElementsAre("Tanh"));
  EXPECT_THAT(segments[5].after, ElementsAre(1));
  EXPECT_THAT(names(segments[6].nodes), ElementsAre("Add"));
  EXPECT_THAT(segments[6].after, ElementsAre(4, 5));
  EXPECT_EQ(segments[7].action, graph_.find("put")->id);
  for (const Segment& segment : segments) EXPECT_THAT(segment.receives, IsEmpty());
}

// In random graphs some tensors arrive, some are sent and some are assigned. Every node is in one
// segment, runs after its inputs, and awaits exactly the receives among its ancestors.
TEST(Segments, OfRandomGraphsAwaitExactlyWhatTheirNodesNeed) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    graph::testing::RandomGraph made = graph::testing::makeRandomGraph(random, 30);
    graph::Graph& part = made.graph;
    std::vector<Output>& tensors = made.tensors;
    graph::Builder b(part);
    for (int i = 0; i < 9; ++i) {
      const Output some = tensors[random.below(tensors.size())];
      const graph::Attributes edge = {{"key", "k" + std::to_string(i)},
                                      {"dtype", DType::kFloat32},
                                      {"shape", part.spec(some).shape}};
      if (i % 3 == 2) {
        const Output state = b.variable("state " + std::to_string(i), part.spec(some).shape);
        tensors.push_back({b.node("AssignAdd", {state, some})});
        tensors.push_back(b.add(some, tensors.back()));
      } else if (i % 3 == 0) {
        b.node("_Send", {some}, edge);
      } else {
        tensors.push_back(b.add(some, {b.node("_Recv", {}, edge)}));
      }
    }
    const std::vector<Segment> segments = cutIntoSegments(part, {tensors.back()});
    std::vector<std::set<NodeId>> needs(part.nodes().size());
    for (const Node& node : part.nodes()) {
      std::set<NodeId>& own = needs[static_cast<size_t>(node.id.value)];
      if (node.op == "_Recv") own.insert(node.id);
      const auto follow = [&](NodeId before) {
        const auto& of = needs[static_cast<size_t>(before.value)];
        own.insert(of.begin(), of.end());
      };
      for (const Output& input : node.inputs) follow(input.node);
      for (const NodeId before : node.control_inputs) follow(before);
    }
    std::set<NodeId> placed;
    std::vector<std::set<NodeId>> awaited(segments.size());
    for (size_t i = 0; i < segments.size(); ++i) {
      awaited[i].insert(segments[i].receives.begin(), segments[i].receives.end());
      std::set<NodeId> ran;  // in the segments that have ended
      for (const size_t before : segments[i].after) {
        ASSERT_LT(before, i);
        awaited[i].insert(awaited[before].begin(), awaited[before].end());
        ran.insert(segments[before].nodes.begin(), segments[before].nodes.end());
        if (segments[before].action) ran.insert(*segments[before].action);
      }
      std::vector<NodeId> own = segments[i].nodes;
      if (segments[i].action) own.push_back(*segments[i].action);
      EXPECT_TRUE(!segments[i].action || own.size() == 1);
      for (const NodeId id : own) {
        EXPECT_TRUE(placed.insert(id).second);
        EXPECT_EQ(awaited[i], needs[static_cast<size_t>(id.value)]) << part.node(id).name;
        ran.insert(id);
        for (const Output& input : part.node(id).inputs) {
          const Node& source = part.node(input.node);
          EXPECT_TRUE(isSource(source) || source.op == "_Recv" || ran.contains(source.id));
        }
      }
    }
    for (const Node& node : part.nodes()) {
      const bool computes = !isSource(node) && node.op != "_Recv" && node.op != "_Send";
      EXPECT_EQ(placed.contains(node.id), computes) << node.name;
    }
  }
}

// A tensor that is passed on without computing is sent first, but not before its control inputs.
TEST(Segments, ASendWaitsForItsControlInputs) {
  graph::Graph part(graph::standardOps());
  graph::Builder b(part);
  const Output x = b.placeholder("x", DType::kFloat32, {1});
  const Output y{b.node("Tanh", {x})};
  const NodeId sent = b.node(
      "_Send", {x}, {{"key", std::string("k")}, {"dtype", DType::kFloat32}, {"shape", Shape{1}}},
      "sent", {y.node});
  const std::vector<Segment> segments = cutIntoSegments(part, {});
  ASSERT_THAT(segments, SizeIs(1));
  EXPECT_THAT(segments[0].nodes, ElementsAre(y.node));
  EXPECT_THAT(segments[0].sends, ElementsAre(sent));
}

// Each node of a chain takes one more tensor from elsewhere: n receives make n sets, of n / 2 on
// average.
TEST(Segments, SetsThatWouldTakeAllMemoryAreRefused) {
  const auto chainOf = [](int receives) {
    graph::Graph part(graph::standardOps());
    graph::Builder b(part);
    Output last = b.constant({1}, 0);
    for (int i = 0; i < receives; ++i) {
      const Output received{b.node(
          "_Recv", {},
          {{"key", "k" + std::to_string(i)}, {"dtype", DType::kFloat32}, {"shape", Shape{1}}})};
      last = {b.node("Add", {last, received})};
    }
    return cutIntoSegments(part, {last}).size();
  };
  EXPECT_EQ(chainOf(100), 100u);
  EXPECT_THAT(graph::testing::errorText([&] { chainOf(6000); }),
              ::testing::HasSubstr("different sets of tensors"));
}

}  // namespace
}  // namespace dtf::engine
