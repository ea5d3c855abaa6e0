#include "common/summary/graph_def.h"

#include <protozero/pbf_writer.hpp>

#include "common/base/check.h"
#include "common/graph/function.h"

namespace dtf::summary {

using protozero::pbf_writer;

namespace {

// Field numbers of tensorflow.GraphDef, NodeDef, AttrValue and TensorShapeProto.
constexpr uint32_t kGraphNode = 1;
constexpr uint32_t kGraphVersions = 4;
constexpr uint32_t kVersionsProducer = 1;
constexpr int32_t kProducer = 1;  // no release of TensorFlow: the graph is only drawn
namespace node_def {
constexpr uint32_t kName = 1;
constexpr uint32_t kOp = 2;
constexpr uint32_t kInput = 3;
constexpr uint32_t kDevice = 4;
constexpr uint32_t kAttribute = 5;
}  // namespace node_def
constexpr uint32_t kMapKey = 1;
constexpr uint32_t kMapValue = 2;
namespace attribute_value {
constexpr uint32_t kList = 1;
constexpr uint32_t kText = 2;
constexpr uint32_t kInteger = 3;
constexpr uint32_t kSingle = 4;
constexpr uint32_t kBoolean = 5;
constexpr uint32_t kType = 6;
constexpr uint32_t kShape = 7;
constexpr uint32_t kFunction = 10;
}  // namespace attribute_value
constexpr uint32_t kFunctionName = 1;
constexpr uint32_t kDimension = 2;
constexpr uint32_t kDimensionSize = 1;

int32_t dataType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 1;
    case DType::kInt32:
      return 3;
    case DType::kUInt8:
      return 4;
    case DType::kInt64:
      return 9;
    case DType::kBFloat16:
      return 14;
  }
  return 0;  // DT_INVALID
}

// A scalar's shape has no dimensions: an empty message.
std::string shapeOf(const Shape& shape) {
  std::string encoded;
  pbf_writer proto(encoded);
  for (const int64_t size : shape.dims()) {
    std::string dimension;
    pbf_writer(dimension).add_int64(kDimensionSize, size);
    proto.add_message(kDimension, dimension);
  }
  return encoded;
}

struct AttributeEncoder {
  pbf_writer proto;
  void operator()(bool value) { proto.add_bool(attribute_value::kBoolean, value); }
  void operator()(int64_t value) { proto.add_int64(attribute_value::kInteger, value); }
  void operator()(double value) {
    proto.add_float(attribute_value::kSingle, static_cast<float>(value));
  }
  void operator()(const std::string& value) { proto.add_string(attribute_value::kText, value); }
  void operator()(DType value) { proto.add_enum(attribute_value::kType, dataType(value)); }
  void operator()(const Shape& value) {
    proto.add_message(attribute_value::kShape, shapeOf(value));
  }
  // TensorFlow names its functions; ours are drawn with their size.
  void operator()(const graph::FunctionRef& value) {
    const size_t nodes = value == nullptr ? 0 : value->graph().nodes().size();
    std::string function;
    pbf_writer(function).add_string(kFunctionName,
                                    value == nullptr ? "none" : std::to_string(nodes) + " nodes");
    proto.add_message(attribute_value::kFunction, function);
  }
};

void addAttribute(pbf_writer& node, const std::string& name, const std::string& value) {
  std::string entry;
  pbf_writer proto(entry);
  proto.add_string(kMapKey, name);
  proto.add_message(kMapValue, value);
  node.add_message(node_def::kAttribute, entry);
}

// Returns the shapes of all outputs of the node.
std::string shapesOf(const graph::Node& node) {
  std::string shapes;
  pbf_writer proto(shapes);
  for (const graph::TensorSpec& output : node.outputs)
    proto.add_message(attribute_value::kShape, shapeOf(output.shape));
  std::string list;
  pbf_writer(list).add_message(attribute_value::kList, shapes);
  return list;
}

std::string inputName(const graph::Graph& graph, const graph::Output& input) {
  const std::string& name = graph.node(input.node).name;
  return input.index == 0 ? name : name + ":" + std::to_string(input.index);
}

std::string encodeNode(const graph::Graph& graph, const graph::Node& node,
                       const std::string& device) {
  DTF_CHECK(!node.name.empty() && !node.op.empty());
  std::string encoded;
  pbf_writer proto(encoded);
  proto.add_string(node_def::kName, node.name);
  proto.add_string(node_def::kOp, node.op);
  for (const graph::Output& input : node.inputs)
    proto.add_string(node_def::kInput, inputName(graph, input));
  for (const graph::NodeId before : node.control_inputs)
    proto.add_string(node_def::kInput, "^" + graph.node(before).name);
  proto.add_string(node_def::kDevice, device);
  for (const auto& [name, attribute] : node.attributes) {
    std::string value;
    std::visit(AttributeEncoder{pbf_writer(value)}, attribute);
    addAttribute(proto, name, value);
  }
  addAttribute(proto, "_output_shapes", shapesOf(node));
  return encoded;
}

}  // namespace

std::string encodeGraphDef(const graph::Graph& graph,
                           const std::function<std::string(graph::NodeId)>& device_of) {
  std::string encoded;
  pbf_writer proto(encoded);
  for (const graph::Node& node : graph.nodes())
    proto.add_message(kGraphNode, encodeNode(graph, node, device_of(node.id)));
  std::string versions;
  pbf_writer(versions).add_int32(kVersionsProducer, kProducer);
  proto.add_message(kGraphVersions, versions);
  return encoded;
}

}  // namespace dtf::summary
