// parseOnnxWeights(): reads only the parts of onnx.proto that name, hold or use an initializer, or
// name the writer.

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <set>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/model_files/onnx_proto.h"
#include "common/model_files/onnx_tensor.h"
#include "common/model_files/onnx_uses.h"
#include "common/model_files/trained_model.h"
#include "common/model_files/weight_order.h"
#include "common/model_files/weight_reader.h"

namespace dtf::model_files {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr auto kBytes = pbf_wire_type::length_delimited;
constexpr auto kVarint = pbf_wire_type::varint;
// Fields, as in onnx_proto.cc.
constexpr uint32_t kInModelGraph = 7, kInModelMetadata = 14, kInEntryKey = 1, kInEntryValue = 2;
constexpr uint32_t kInGraphNode = 1, kInGraphInitializer = 5, kInGraphInput = 11;
constexpr uint32_t kInValueName = 1, kInValueType = 2, kInTypeTensor = 1, kInTensorShape = 2,
                   kInShapeDim = 1, kInDimValue = 1;
constexpr uint32_t kInNodeInput = 1, kInNodeOutput = 2, kInNodeOp = 4, kInNodeAttribute = 5;
constexpr uint32_t kInAttributeName = 1, kInAttributeFloat = 2, kInAttributeInt = 3,
                   kInAttributeTensor = 5, kInAttributeFloats = 7, kInAttributeInts = 8;
constexpr size_t kImageDims = 4, kNodeNamesMax = 65536;
// An entry of a graph (a node, an initializer, an input) has a name, and a type or an output: it
// takes at least so many bytes of a file. In memory it takes a hundred and more, so a file of empty
// entries is rejected while it is read.
constexpr size_t kEntryBytesMin = 8, kEntriesMax = size_t{1} << 20;

std::string textOf(protozero::data_view view) {
  return {view.data(), view.size()};
}

// A node, and the value of one that is a Constant.
struct ReadNode {
  OnnxNode node;
  std::optional<OnnxTensor> constant;
};

class OnnxWeights {
 public:
  OnnxWeights(const std::string& name, const ReadElsewhere& elsewhere)
      : file_(name), elsewhere_(elsewhere) {}

  FoundWeights read(std::string_view bytes) {
    bytes_ = bytes.size();
    pbf_reader model(bytes.data(), bytes.size());
    while (model.next()) {
      if (model.tag_and_type() == protozero::tag_and_type(kInModelGraph, kBytes))
        readGraph(model.get_message());
      else if (model.tag_and_type() == protozero::tag_and_type(kInModelMetadata, kBytes))
        readMetadata(model.get_message());
      else
        model.skip();
    }
    followNodes();
    FoundWeights found;
    found.input = input_;
    found.signature = signature_;
    for (const OnnxTensor& tensor : tensors_)
      if (!own_ || !constants_.contains(tensor.name)) take(tensor, found);
    return found;
  }

 private:
  [[noreturn]] void fail(const OnnxTensor& tensor, const std::string& why) const {
    throw Error(ErrorCode::kBadData, printable(fmt::format("{}: tensor '{}': {}", file_,
                                                           tensor.name.substr(0, 200), why)));
  }

  void readMetadata(pbf_reader entry) {
    std::string key, value;
    while (entry.next()) {
      if (entry.tag_and_type() == protozero::tag_and_type(kInEntryKey, kBytes))
        key = textOf(entry.get_view());
      else if (entry.tag_and_type() == protozero::tag_and_type(kInEntryValue, kBytes))
        value = textOf(entry.get_view());
      else
        entry.skip();
    }
    own_ = own_ || key == kWriterKey;
    if (key == kSignatureEntry) signature_ = value;
    if (key == kConstantsEntry)
      for (std::string& name : split(value, '\n')) constants_.insert(std::move(name));
  }

  void readGraph(pbf_reader graph) {
    while (graph.next()) {
      if (graph.tag_and_type() == protozero::tag_and_type(kInGraphNode, kBytes))
        addNode(readNode(entry(graph)));
      else if (graph.tag_and_type() == protozero::tag_and_type(kInGraphInitializer, kBytes))
        tensors_.push_back(readOnnxTensor(entry(graph)));
      else if (graph.tag_and_type() == protozero::tag_and_type(kInGraphInput, kBytes))
        readInput(entry(graph));
      else
        graph.skip();
    }
  }

  pbf_reader entry(pbf_reader& graph) {
    if (++entries_ > std::min(kEntriesMax, bytes_ / kEntryBytesMin))
      throw Error(ErrorCode::kBadData,
                  fmt::format("{}: it is no ONNX model, or damaged: it has more nodes, weights and "
                              "inputs than its {} bytes hold, of which each takes {} at least, or "
                              "more than {}",
                              file_, bytes_, kEntryBytesMin, kEntriesMax));
    return graph.get_message();
  }

  void readInput(pbf_reader value) {
    std::string name;
    std::vector<int64_t> dims;
    while (value.next()) {
      if (value.tag_and_type() == protozero::tag_and_type(kInValueName, kBytes))
        name = textOf(value.get_view());
      else if (value.tag_and_type() == protozero::tag_and_type(kInValueType, kBytes))
        dims = dimsOf(value.get_message());
      else
        value.skip();
    }
    inputs_.emplace_back(std::move(name), std::move(dims));
  }

  // Returns 0 for a dimension without a number.
  static std::vector<int64_t> dimsOf(pbf_reader type) {
    std::vector<int64_t> dims;
    if (!type.next(kInTypeTensor, kBytes)) return dims;
    pbf_reader tensor = type.get_message();
    if (!tensor.next(kInTensorShape, kBytes)) return dims;
    pbf_reader shape = tensor.get_message();
    while (shape.next(kInShapeDim, kBytes)) {
      pbf_reader dim = shape.get_message();
      dims.push_back(dim.next(kInDimValue, kVarint) ? dim.get_int64() : 0);
    }
    return dims;
  }

  // A Constant with floats and dimensions may be a weight; the others are sizes, axes and factors.
  void addNode(ReadNode read) {
    if (read.constant && read.node.op == "Constant" && !read.node.outputs.empty() &&
        !read.constant->dims.empty() && onnxFloatOf(*read.constant)) {
      read.constant->name = read.node.outputs[0];
      tensors_.push_back(std::move(*read.constant));
    }
    nodes_.push_back(std::move(read.node));
  }

  ReadNode readNode(pbf_reader proto) const {
    ReadNode read;
    OnnxNode& node = read.node;
    while (proto.next()) {
      // Names may be empty: two bytes of file each, and dozens in memory.
      if (node.inputs.size() + node.outputs.size() > kNodeNamesMax)
        throw Error(
            ErrorCode::kBadData,
            fmt::format("{}: it is no ONNX model, or damaged: a node has more than {} inputs "
                        "and outputs",
                        file_, kNodeNamesMax));
      switch (proto.tag_and_type()) {
        case protozero::tag_and_type(kInNodeInput, kBytes):
          node.inputs.push_back(textOf(proto.get_view()));
          break;
        case protozero::tag_and_type(kInNodeOutput, kBytes):
          node.outputs.push_back(textOf(proto.get_view()));
          break;
        case protozero::tag_and_type(kInNodeOp, kBytes):
          node.op = textOf(proto.get_view());
          break;
        case protozero::tag_and_type(kInNodeAttribute, kBytes):
          readAttribute(proto.get_message(), read);
          break;
        default:
          proto.skip();
      }
    }
    return read;
  }

  static void readAttribute(pbf_reader attribute, ReadNode& to) {
    OnnxNode& node = to.node;
    std::string name;
    int64_t whole = 0;
    float real = 0;
    std::vector<int64_t> wholes;
    while (attribute.next()) {
      switch (attribute.tag_and_type()) {
        case protozero::tag_and_type(kInAttributeName, kBytes):
          name = textOf(attribute.get_view());
          break;
        case protozero::tag_and_type(kInAttributeFloat, pbf_wire_type::fixed32):
          real = attribute.get_float();
          break;
        case protozero::tag_and_type(kInAttributeInt, kVarint):
          whole = attribute.get_int64();
          break;
        case protozero::tag_and_type(kInAttributeTensor, kBytes):
          to.constant = readOnnxTensor(attribute.get_message());
          break;
        case protozero::tag_and_type(kInAttributeFloats, kBytes):
          to.constant = vectorOf(attribute.get_packed_float());
          break;
        case protozero::tag_and_type(kInAttributeInts, kVarint):
          wholes.push_back(attribute.get_int64());
          break;
        case protozero::tag_and_type(kInAttributeInts, kBytes):
          for (const int64_t each : attribute.get_packed_int64()) wholes.push_back(each);
          break;
        default:
          attribute.skip();
      }
    }
    if (name == "transA") node.trans_a = whole != 0;
    if (name == "transB") node.trans_b = whole != 0;
    if (name == "alpha") node.alpha = real;
    if (name == "beta") node.beta = real;
    if (name == "axis") node.axis = whole;
    if (name == "perm") node.perm = std::move(wholes);
  }

  // Returns the value of a Constant's attribute value_floats.
  template <class Floats>
  static OnnxTensor vectorOf(const Floats& floats) {
    OnnxTensor tensor;
    for (const float each : floats) tensor.floats.push_back(each);
    tensor.dims = {static_cast<int64_t>(tensor.floats.size())};
    tensor.type = onnxType(DType::kFloat32);
    return tensor;
  }

  // Finds how the nodes use each weight.
  void followNodes() {
    std::set<std::string> weights, images;
    for (const OnnxTensor& tensor : tensors_) weights.insert(tensor.name);
    for (const auto& [name, dims] : inputs_) {
      if (dims.size() != kImageDims || weights.contains(name)) continue;
      images.insert(name);
      input_.assign(dims.begin() + 1, dims.end());
    }
    if (images.size() > 1) images.clear();  // dtf's models have one
    uses_ = onnxUses(nodes_, weights, images);
  }

  void take(const OnnxTensor& tensor, FoundWeights& found) const {
    const auto skip = [&](const std::string& why) { found.skipped.push_back({tensor.name, why}); };
    const std::optional<StoredFloat> type = onnxFloatOf(tensor);
    if (!type)
      return skip(fmt::format(
          "its type is {}, and 1, 10, 11 and 16, floats of each width, are read", tensor.type));
    if (tensor.elsewhere && !elsewhere_) return skip("its data are in another file");
    if (const auto use = uses_.find(tensor.name);
        use != uses_.end() && !use->second.refused.empty())
      return skip(use->second.refused);
    const std::optional<uint64_t> size = onnxBytes(tensor, *type);
    const std::string read = tensor.elsewhere && size ? readElsewhere(tensor, *size) : "";
    const std::string_view bytes = tensor.elsewhere ? std::string_view(read) : ownBytes(tensor);
    if (!size || *size != bytes.size())
      fail(tensor, fmt::format("its shape of {} dimension(s) doesn't hold its {} bytes",
                               tensor.dims.size(), bytes.size()));
    std::vector<float> values(bytes.size() / storedBytes(*type));
    if (const std::optional<std::string> mistake = readFloats(*type, bytes, values))
      return skip(*mistake);
    found.tensors.push_back(turned(tensor, Shape(tensor.dims), std::move(values)));
  }

  std::string readElsewhere(const OnnxTensor& tensor, uint64_t bytes) const {
    try {
      return elsewhere_(*tensor.elsewhere, bytes);
    } catch (const Error& error) {
      throw Error(error.code(),
                  printable(fmt::format("{}: tensor '{}': {}", file_, tensor.name.substr(0, 200),
                                        error.message())));
    }
  }

  FoundTensor turned(const OnnxTensor& tensor, const Shape& shape,
                     std::vector<float> values) const {
    const auto found = uses_.find(tensor.name);
    const OnnxUse use = found == uses_.end() ? OnnxUse{} : found->second;
    FoundTensor result{use.name.empty() ? tensor.name : use.name, {}, use.layout};
    Shape turned = shape;
    if (use.turn == OnnxUse::Turn::kFilter && shape.rank() == 4) {
      turned = channelsLast(shape);
      values = channelsLast(shape, values);
    } else if (use.turn == OnnxUse::Turn::kTransposed && shape.rank() == 2) {
      // A matrix is a filter of one position, as [filters, channels, 1, 1].
      const Shape filter{shape.dim(0), shape.dim(1), 1, 1};
      turned = Shape{shape.dim(1), shape.dim(0)};
      values = channelsLast(filter, values);
    }
    result.turned = use.turn != OnnxUse::Turn::kNone;
    if (own_) result.layout = WeightLayout::kDtf;
    result.value = Tensor(DType::kFloat32, turned);
    DTF_CHECK(result.value.bytes() == values.size() * sizeof(float));
    if (!values.empty()) std::memcpy(result.value.data(), values.data(), result.value.bytes());
    return result;
  }

  const std::string& file_;
  const ReadElsewhere& elsewhere_;
  size_t bytes_ = 0, entries_ = 0;  // of the file
  std::string signature_;
  bool own_ = false;                 // dtf wrote it
  std::set<std::string> constants_;  // of its tensors, those that are no variables
  std::vector<OnnxNode> nodes_;
  std::vector<std::pair<std::string, std::vector<int64_t>>> inputs_;  // with their sizes
  std::vector<OnnxTensor> tensors_;
  std::vector<int64_t> input_;  // the sizes of an example if it has three
  std::map<std::string, OnnxUse> uses_;
};

}  // namespace

FoundWeights parseOnnxWeights(std::string_view bytes, const std::string& name,
                              const ReadElsewhere& elsewhere) {
  try {
    return OnnxWeights(name, elsewhere).read(bytes);
  } catch (const protozero::exception& error) {
    throw Error(ErrorCode::kBadData,
                fmt::format("{}: it is no ONNX model, or damaged: {}", name, error.what()));
  }
}

}  // namespace dtf::model_files
