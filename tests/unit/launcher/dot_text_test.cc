#include "launcher/dot_text.h"

#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"

namespace dtf::launcher {
namespace {

TEST(DotText, NamesMayHoldAnything) {
  EXPECT_EQ(dotQuoted(R"(a "b" \c)"), R"("a \"b\" \\c")");
  EXPECT_EQ(dotEdge("a\"", "b", ""), "  \"a\\\"\" -> \"b\";\n");
  EXPECT_EQ(
      dotBoxes({{"/cpu", dotNode("a", "a\nAdd")}}),
      "  subgraph \"cluster /cpu\" {\n    label=\"/cpu\";\n    \"a\" [label=\"a\nAdd\"];\n  }\n");
}

TEST(DotText, WhatANodeWaitsForIsDashedAndWhatIsNotDrawnHasNoEdge) {
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const graph::Output x = b.placeholder("x", DType::kFloat32, {1});
  const graph::NodeId first = b.node("Relu", {x}, {}, "first");
  const graph::NodeId second = b.node("Tanh", {x}, {}, "second", {first});
  EXPECT_EQ(dotEdgesTo(graph, graph.node(second), [](const auto&) { return true; }),
            "  \"x\" -> \"second\";\n  \"first\" -> \"second\" [style=dashed];\n");
  EXPECT_EQ(
      dotEdgesTo(graph, graph.node(second), [](const auto& node) { return node.name == "x"; }),
      "  \"x\" -> \"second\";\n");
}

}  // namespace
}  // namespace dtf::launcher
