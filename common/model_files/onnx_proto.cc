#include "common/model_files/onnx_proto.h"

#include <limits>
#include <protozero/pbf_writer.hpp>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::model_files {

using protozero::pbf_writer;

namespace {

// ModelProto
constexpr uint32_t kModelIrVersion = 1, kModelProducer = 2, kModelProducerVersion = 3,
                   kModelGraph = 7, kModelOpset = 8, kModelMetadata = 14;
constexpr uint32_t kOpsetVersion = 2;
constexpr uint32_t kEntryKey = 1, kEntryValue = 2;
// GraphProto
constexpr uint32_t kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11,
                   kGraphOutput = 12;
// NodeProto
constexpr uint32_t kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOp = 4, kNodeAttribute = 5;
// AttributeProto
constexpr uint32_t kAttributeName = 1, kAttributeFloat = 2, kAttributeInt = 3, kAttributeInts = 8,
                   kAttributeType = 20;
constexpr int32_t kTypeFloat = 1, kTypeInt = 2, kTypeInts = 7;
// TensorProto
constexpr uint32_t kTensorDims = 1, kTensorType = 2, kTensorName = 8, kTensorRaw = 9;
// ValueInfoProto, TypeProto, TypeProto.Tensor, TensorShapeProto, its Dimension
constexpr uint32_t kValueName = 1, kValueType = 2, kTypeTensor = 1, kTensorElement = 1,
                   kTensorShape = 2, kShapeDim = 1, kDimValue = 1, kDimName = 2;

std::string encodeAttribute(const OnnxAttribute& attribute) {
  std::string encoded;
  pbf_writer proto(encoded);
  proto.add_string(kAttributeName, attribute.name);
  if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
    proto.add_int64(kAttributeInt, *number);
    proto.add_enum(kAttributeType, kTypeInt);
  } else if (const auto* real = std::get_if<float>(&attribute.value)) {
    proto.add_float(kAttributeFloat, *real);
    proto.add_enum(kAttributeType, kTypeFloat);
  } else {
    for (const int64_t each : std::get<std::vector<int64_t>>(attribute.value))
      proto.add_int64(kAttributeInts, each);
    proto.add_enum(kAttributeType, kTypeInts);
  }
  return encoded;
}

std::string encodeTensor(const std::string& name, DType dtype, std::span<const int64_t> dims,
                         std::string_view raw) {
  std::string encoded;
  pbf_writer proto(encoded);
  for (const int64_t dim : dims) proto.add_int64(kTensorDims, dim);
  proto.add_int32(kTensorType, static_cast<int32_t>(onnxType(dtype)));
  proto.add_string(kTensorName, name);
  proto.add_bytes(kTensorRaw, raw.data(), raw.size());
  return encoded;
}

std::string encodeValue(const OnnxValue& value) {
  std::string shape;
  pbf_writer shape_proto(shape);
  {
    pbf_writer dim(shape_proto, kShapeDim);
    dim.add_string(kDimName, "batch");
  }
  for (const int64_t size : value.example) {
    pbf_writer dim(shape_proto, kShapeDim);
    dim.add_int64(kDimValue, size);
  }
  std::string encoded;
  pbf_writer proto(encoded);
  proto.add_string(kValueName, value.name);
  pbf_writer type(proto, kValueType);
  pbf_writer tensor(type, kTypeTensor);
  tensor.add_int32(kTensorElement, static_cast<int32_t>(onnxType(value.dtype)));
  tensor.add_message(kTensorShape, shape);
  return encoded;
}

template <class T>
std::string_view rawBytes(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace

int64_t onnxType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 1;
    case DType::kUInt8:
      return 2;
    case DType::kInt32:
      return 6;
    case DType::kInt64:
      return 7;
    case DType::kBFloat16:
      break;
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(dtype)));
}

void OnnxProto::addNode(std::string_view op, std::span<const std::string> inputs,
                        const std::string& output, std::span<const OnnxAttribute> attributes) {
  DTF_CHECK(!op.empty() && !output.empty());
  std::string encoded;
  pbf_writer proto(encoded);
  for (const std::string& input : inputs) proto.add_string(kNodeInput, input);
  proto.add_string(kNodeOutput, output);
  proto.add_string(kNodeName, std::string(op) + "_" + std::to_string(nodes_++));
  proto.add_string(kNodeOp, op.data(), op.size());
  for (const OnnxAttribute& attribute : attributes)
    proto.add_message(kNodeAttribute, encodeAttribute(attribute));
  pbf_writer(graph_).add_message(kGraphNode, encoded);
}

void OnnxProto::addConstant(const std::string& name, std::span<const int64_t> dims,
                            std::span<const float> values) {
  uint64_t elements = 1;
  for (const int64_t dim : dims) elements *= static_cast<uint64_t>(dim);
  DTF_CHECK_MSG(elements == values.size(), name);
  pbf_writer(graph_).add_message(kGraphInitializer,
                                 encodeTensor(name, DType::kFloat32, dims, rawBytes(values)));
}

void OnnxProto::addConstant(const std::string& name, std::span<const int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  pbf_writer(graph_).add_message(kGraphInitializer,
                                 encodeTensor(name, DType::kInt64, {&count, 1}, rawBytes(values)));
}

std::string OnnxProto::finish(const std::string& name, std::span<const OnnxValue> inputs,
                              std::span<const OnnxValue> outputs,
                              const std::map<std::string, std::string>& metadata) {
  DTF_CHECK(!inputs.empty() && !outputs.empty());
  pbf_writer graph(graph_);
  graph.add_string(kGraphName, name);
  for (const OnnxValue& input : inputs) graph.add_message(kGraphInput, encodeValue(input));
  for (const OnnxValue& output : outputs) graph.add_message(kGraphOutput, encodeValue(output));
  constexpr uint64_t kGraphBytesMax = std::numeric_limits<int32_t>::max() - (1 << 20);
  if (graph_.size() > kGraphBytesMax)
    throw Error(
        ErrorCode::kCannotWrite,
        "an ONNX file holds at most 2 GiB: export to .safetensors, which has no such limit");
  std::string encoded;
  pbf_writer proto(encoded);
  proto.add_int64(kModelIrVersion, kOnnxIrVersion);
  proto.add_string(kModelProducer, "dtf");
  proto.add_string(kModelProducerVersion, DTF_VERSION);
  proto.add_message(kModelGraph, graph_);
  {
    pbf_writer opset(proto, kModelOpset);
    opset.add_int64(kOpsetVersion, kOnnxOpset);
  }
  for (const auto& [key, value] : metadata) {
    pbf_writer entry(proto, kModelMetadata);
    entry.add_string(kEntryKey, key);
    entry.add_string(kEntryValue, value);
  }
  return encoded;
}

}  // namespace dtf::model_files
