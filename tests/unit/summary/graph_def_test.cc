#include "common/summary/graph_def.h"

#include <gtest/gtest.h>

#include "common/graph/op_def.h"
#include "tests/unit/summary/proto_reader.h"

namespace dtf::summary {

namespace {

std::map<std::string, std::string> attributesOf(const std::string& node) {
  std::map<std::string, std::string> attributes;
  for (const ProtoField& entry : fieldsOf(node, 5))
    attributes[fieldOf(entry.bytes, 1).bytes] = fieldOf(entry.bytes, 2).bytes;
  return attributes;
}

}  // namespace

TEST(GraphDef, HasEveryNodeWithInputsDeviceAttributesAndShapes) {
  graph::Graph graph(graph::standardOps());
  const graph::NodeId x =
      graph.addNode({"x", "Placeholder", {}, {{"dtype", DType::kFloat32}, {"shape", Shape{2, 3}}}});
  graph.addNode({"y", "Relu", {{x, 0}}, {}, {x}});
  const std::string encoded = encodeGraphDef(
      graph, [](graph::NodeId node) { return "/job:worker/task:" + std::to_string(node.value); });
  const std::vector<ProtoField> nodes = fieldsOf(encoded, 1);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(fieldOf(nodes[0].bytes, 1).bytes, "x");
  EXPECT_EQ(fieldOf(nodes[0].bytes, 2).bytes, "Placeholder");
  EXPECT_EQ(fieldOf(nodes[0].bytes, 4).bytes, "/job:worker/task:0");
  const auto attributes = attributesOf(nodes[0].bytes);
  EXPECT_EQ(fieldOf(attributes.at("dtype"), 6).integer, 1u);
  const std::vector<ProtoField> dimensions = fieldsOf(fieldOf(attributes.at("shape"), 7).bytes, 2);
  ASSERT_EQ(dimensions.size(), 2u);
  EXPECT_EQ(fieldOf(dimensions[1].bytes, 1).integer, 3u);
  const std::vector<ProtoField> inputs = fieldsOf(nodes[1].bytes, 3);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0].bytes, "x");
  EXPECT_EQ(inputs[1].bytes, "^x");
  const std::string list = fieldOf(attributesOf(nodes[1].bytes).at("_output_shapes"), 1).bytes;
  EXPECT_EQ(fieldsOf(fieldOf(list, 7).bytes, 2).size(), 2u);
}

// Readers take the n-th shape for output n, so an empty shape can't be left out.
TEST(GraphDef, AScalarHasAShapeOfNoDimensions) {
  graph::Graph graph(graph::standardOps());
  graph.addNode({"x", "Placeholder", {}, {{"dtype", DType::kFloat32}, {"shape", Shape{}}}});
  const std::string encoded = encodeGraphDef(graph, [](graph::NodeId) { return ""; });
  const auto attributes = attributesOf(fieldOf(encoded, 1).bytes);
  EXPECT_EQ(attributes.at("shape"), std::string("\x3a\0", 2));
  EXPECT_EQ(attributes.at("_output_shapes"), std::string("\x0a\x02\x3a\0", 4));
}

}  // namespace dtf::summary
