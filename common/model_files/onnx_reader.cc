// parseOnnxWeights(): of onnx.proto only what names, holds and uses an initializer.

#include <fmt/core.h>

#include <cstring>
#include <map>
#include <protozero/pbf_reader.hpp>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/model_files/weight_order.h"
#include "common/model_files/weight_reader.h"

namespace dtf::model_files {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr auto kBytes = pbf_wire_type::length_delimited;
constexpr auto kVarint = pbf_wire_type::varint;
// Fields, as in onnx_proto.cc.
constexpr uint32_t kInModelGraph = 7, kInGraphNode = 1, kInGraphInitializer = 5;
constexpr uint32_t kInNodeInput = 1, kInNodeOp = 4, kInNodeAttribute = 5;
constexpr uint32_t kInAttributeName = 1, kInAttributeInt = 3;
constexpr uint32_t kInTensorDims = 1, kInTensorType = 2, kInTensorFloats = 4, kInTensorName = 8,
                   kInTensorRaw = 9, kInTensorLocation = 14;
constexpr int64_t kOnnxFloat = 1;
constexpr size_t kDimsMax = 8;

std::string textOf(protozero::data_view view) {
  return {view.data(), view.size()};
}

// How a node reads an initializer.
enum class Use { kAsItIs, kFilter, kTransposed };

struct RawTensor {
  std::string name;
  std::vector<int64_t> dims;
  int64_t type = 0;
  bool elsewhere = false;  // in another file
  std::string_view raw;
  std::vector<float> floats;
};

class OnnxWeights {
 public:
  explicit OnnxWeights(const std::string& name) : file_(name) {}

  FoundWeights read(std::string_view bytes) {
    pbf_reader model(bytes.data(), bytes.size());
    while (model.next()) {
      if (model.tag_and_type() == protozero::tag_and_type(kInModelGraph, kBytes))
        readGraph(model.get_message());
      else
        model.skip();
    }
    FoundWeights found;
    for (const RawTensor& tensor : tensors_) take(tensor, found);
    return found;
  }

 private:
  [[noreturn]] void fail(const RawTensor& tensor, const std::string& why) const {
    throw Error(ErrorCode::kBadData,
                fmt::format("{}: tensor '{}': {}", file_, tensor.name.substr(0, 200), why));
  }

  void readGraph(pbf_reader graph) {
    while (graph.next()) {
      if (graph.tag_and_type() == protozero::tag_and_type(kInGraphNode, kBytes))
        readNode(graph.get_message());
      else if (graph.tag_and_type() == protozero::tag_and_type(kInGraphInitializer, kBytes))
        tensors_.push_back(readTensor(graph.get_message()));
      else
        graph.skip();
    }
  }

  void readNode(pbf_reader node) {
    std::vector<std::string> inputs;
    std::string op;
    bool transposed = false;
    while (node.next()) {
      if (node.tag_and_type() == protozero::tag_and_type(kInNodeInput, kBytes))
        inputs.push_back(textOf(node.get_view()));
      else if (node.tag_and_type() == protozero::tag_and_type(kInNodeOp, kBytes))
        op = textOf(node.get_view());
      else if (node.tag_and_type() == protozero::tag_and_type(kInNodeAttribute, kBytes))
        transposed = saysTransposed(node.get_message()) || transposed;
      else
        node.skip();
    }
    if (inputs.size() < 2) return;
    if (op == "Conv") uses_[inputs[1]] = Use::kFilter;
    if (op == "Gemm" && transposed) uses_[inputs[1]] = Use::kTransposed;
  }

  static bool saysTransposed(pbf_reader attribute) {
    std::string name;
    int64_t value = 0;
    while (attribute.next()) {
      if (attribute.tag_and_type() == protozero::tag_and_type(kInAttributeName, kBytes))
        name = textOf(attribute.get_view());
      else if (attribute.tag_and_type() == protozero::tag_and_type(kInAttributeInt, kVarint))
        value = attribute.get_int64();
      else
        attribute.skip();
    }
    return name == "transB" && value != 0;
  }

  static RawTensor readTensor(pbf_reader proto) {
    RawTensor tensor;
    while (proto.next()) {
      switch (proto.tag_and_type()) {
        case protozero::tag_and_type(kInTensorDims, kVarint):
          tensor.dims.push_back(proto.get_int64());
          break;
        case protozero::tag_and_type(kInTensorDims, kBytes):
          for (const int64_t dim : proto.get_packed_int64()) tensor.dims.push_back(dim);
          break;
        case protozero::tag_and_type(kInTensorType, kVarint):
          tensor.type = proto.get_int32();
          break;
        case protozero::tag_and_type(kInTensorFloats, kBytes):
          for (const float value : proto.get_packed_float()) tensor.floats.push_back(value);
          break;
        case protozero::tag_and_type(kInTensorName, kBytes):
          tensor.name = textOf(proto.get_view());
          break;
        case protozero::tag_and_type(kInTensorRaw, kBytes): {
          const protozero::data_view raw = proto.get_view();
          tensor.raw = {raw.data(), raw.size()};
          break;
        }
        case protozero::tag_and_type(kInTensorLocation, kVarint):
          tensor.elsewhere = proto.get_int32() != 0;
          break;
        default:
          proto.skip();
      }
    }
    return tensor;
  }

  void take(const RawTensor& tensor, FoundWeights& found) const {
    if (tensor.type != kOnnxFloat || tensor.elsewhere) {
      found.skipped.push_back(fmt::format(
          "{}: {}", tensor.name,
          tensor.elsewhere ? "its data are in another file"
                           : fmt::format("its type is {}, only 1, float, is read", tensor.type)));
      return;
    }
    const std::string_view bytes =
        tensor.floats.empty()
            ? tensor.raw
            : std::string_view(reinterpret_cast<const char*>(tensor.floats.data()),
                               tensor.floats.size() * sizeof(float));
    const Shape shape = checkedShape(tensor, bytes.size());
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    found.tensors.push_back(turned(tensor, shape, std::move(values)));
  }

  Shape checkedShape(const RawTensor& tensor, uint64_t bytes) const {
    uint64_t size = sizeof(float);
    bool fits = tensor.dims.size() <= kDimsMax;
    for (const int64_t dim : tensor.dims)
      fits = fits && dim >= 0 && !__builtin_mul_overflow(size, static_cast<uint64_t>(dim), &size);
    if (!fits || size != bytes)
      fail(tensor, fmt::format("its shape of {} dimension(s) doesn't hold its {} bytes",
                               tensor.dims.size(), bytes));
    return Shape(tensor.dims);
  }

  NamedTensor turned(const RawTensor& tensor, const Shape& shape, std::vector<float> values) const {
    const auto use = uses_.find(tensor.name);
    Shape result = shape;
    if (use != uses_.end() && use->second == Use::kFilter && shape.rank() == 4) {
      result = channelsLast(shape);
      values = channelsLast(shape, values);
    } else if (use != uses_.end() && use->second == Use::kTransposed && shape.rank() == 2) {
      // A matrix is a filter of one position, as [filters, channels, 1, 1].
      const Shape filter{shape.dim(0), shape.dim(1), 1, 1};
      result = Shape{shape.dim(1), shape.dim(0)};
      values = channelsLast(filter, values);
    }
    Tensor value(DType::kFloat32, result);
    DTF_CHECK(value.bytes() == values.size() * sizeof(float));
    if (!values.empty()) std::memcpy(value.data(), values.data(), value.bytes());
    return {tensor.name, std::move(value)};
  }

  const std::string& file_;
  std::map<std::string, Use> uses_;
  std::vector<RawTensor> tensors_;
};

}  // namespace

FoundWeights parseOnnxWeights(std::string_view bytes, const std::string& name) {
  try {
    return OnnxWeights(name).read(bytes);
  } catch (const protozero::exception& error) {
    throw Error(ErrorCode::kBadData,
                fmt::format("{}: it is no ONNX model, or damaged: {}", name, error.what()));
  }
}

}  // namespace dtf::model_files
