#include "common/summary/graph_def.h"

#include "common/summary/proto_writer.h"

namespace dtf::summary {

namespace {

// Of tensorflow.GraphDef, NodeDef, AttrValue and TensorShapeProto.
constexpr uint32_t kGraphNode = 1;
constexpr uint32_t kGraphVersions = 4;
constexpr uint32_t kVersionsProducer = 1;
constexpr int64_t kProducer = 1;  // of no release of TensorFlow: nothing but drawing is intended
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
}  // namespace attribute_value
constexpr uint32_t kDimension = 2;
constexpr uint32_t kDimensionSize = 1;

int64_t dataType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 1;
    case DType::kInt32:
      return 3;
    case DType::kUInt8:
      return 4;
    case DType::kInt64:
      return 9;
  }
  return 0;  // DT_INVALID
}

ProtoWriter shapeOf(const Shape& shape) {
  ProtoWriter proto;
  for (const int64_t size : shape.dims()) {
    ProtoWriter dimension;
    dimension.integer(kDimensionSize, size);
    proto.message(kDimension, dimension);
  }
  return proto;
}

struct AttributeEncoder {
  ProtoWriter& proto;
  void operator()(bool value) { proto.integer(attribute_value::kBoolean, value); }
  void operator()(int64_t value) { proto.integer(attribute_value::kInteger, value); }
  void operator()(double value) {
    proto.single(attribute_value::kSingle, static_cast<float>(value));
  }
  void operator()(const std::string& value) { proto.bytes(attribute_value::kText, value); }
  void operator()(DType value) { proto.integer(attribute_value::kType, dataType(value)); }
  void operator()(const Shape& value) { proto.message(attribute_value::kShape, shapeOf(value)); }
};

void addAttribute(ProtoWriter& node, std::string_view name, const ProtoWriter& value) {
  ProtoWriter entry;
  entry.bytes(kMapKey, name);
  entry.message(kMapValue, value);
  node.message(node_def::kAttribute, entry);
}

std::string inputName(const graph::Graph& graph, const graph::Output& input) {
  const std::string& name = graph.node(input.node).name;
  return input.index == 0 ? name : name + ":" + std::to_string(input.index);
}

ProtoWriter encodeNode(const graph::Graph& graph, const graph::Node& node,
                       const std::string& device) {
  ProtoWriter proto;
  proto.bytes(node_def::kName, node.name);
  proto.bytes(node_def::kOp, node.op);
  for (const graph::Output& input : node.inputs)
    proto.bytes(node_def::kInput, inputName(graph, input));
  for (const graph::NodeId before : node.control_inputs)
    proto.bytes(node_def::kInput, "^" + graph.node(before).name);
  proto.bytes(node_def::kDevice, device);
  for (const auto& [name, attribute] : node.attributes) {
    ProtoWriter value;
    std::visit(AttributeEncoder{value}, attribute);
    addAttribute(proto, name, value);
  }
  ProtoWriter shapes;
  for (const graph::TensorSpec& output : node.outputs)
    shapes.message(attribute_value::kShape, shapeOf(output.shape));
  ProtoWriter list;
  list.message(attribute_value::kList, shapes);
  addAttribute(proto, "_output_shapes", list);
  return proto;
}

}  // namespace

std::string encodeGraphDef(const graph::Graph& graph,
                           const std::function<std::string(graph::NodeId)>& device_of) {
  ProtoWriter proto;
  for (const graph::Node& node : graph.nodes())
    proto.message(kGraphNode, encodeNode(graph, node, device_of(node.id)));
  ProtoWriter versions;
  versions.integer(kVersionsProducer, kProducer);
  proto.message(kGraphVersions, versions);
  return proto.encoded();
}

}  // namespace dtf::summary
