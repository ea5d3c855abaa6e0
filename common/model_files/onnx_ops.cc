#include "common/model_files/onnx_ops.h"

#include <array>
#include <cmath>
#include <map>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/window.h"
#include "common/model_files/weight_order.h"

namespace dtf::model_files {

namespace {

using graph::Node;
using graph::Output;
using Names = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Attributes = std::vector<OnnxAttribute>;

// `bias` is the node that is converted with it; nullptr: none.
using Convert = void (*)(OnnxValues& values, const Node& node, const Node* bias);

[[noreturn]] void failOp(const std::string& why) {
  throw Error(ErrorCode::kBadConfig, why);
}

Output outputOf(const Node& node) {
  return {node.id, 0};
}

const Weight& weightOf(const OnnxValues& values, Output x, const char* what) {
  const Weight* const found = values.weight(x);
  if (found == nullptr) failOp(std::string(what) + " would depend on the input");
  return *found;
}

// ---- element by element

Layout layoutOf(const OnnxValues& values, const Node& node) {
  return values.layoutFor(node.inputs);
}

Names inputsIn(OnnxValues& values, Layout layout, const Node& node) {
  Names names;
  for (const Output input : node.inputs) names.push_back(values.in(layout, input));
  return names;
}

void same(OnnxValues& values, const Node& node, std::string_view op,
          const Attributes& attributes = {}) {
  const Layout layout = layoutOf(values, node);
  values.add(outputOf(node), layout, op, inputsIn(values, layout, node), attributes);
}

// The ops that ONNX has with the same meaning and without settings.
void convertAlike(OnnxValues& values, const Node& node, const Node*) {
  same(values, node, node.op == "AddN" ? "Sum" : std::string_view(node.op));
}

void convertRelu6(OnnxValues& values, const Node& node, const Node*) {
  const Layout layout = layoutOf(values, node);
  values.add(outputOf(node), layout, "Clip",
             Names{values.in(layout, node.inputs[0]), values.scalar(0), values.scalar(6)});
}

void convertLeakyRelu(OnnxValues& values, const Node& node, const Node*) {
  same(values, node, "LeakyRelu", {{"alpha", static_cast<float>(node.attribute<double>("alpha"))}});
}

void convertGelu(OnnxValues& values, const Node& node, const Node*) {
  const Layout layout = layoutOf(values, node);
  const std::string x = values.in(layout, node.inputs[0]);
  std::string inner;
  if (node.attribute<bool>("approximate")) {
    const std::string square = values.add("Mul", Names{x, x});
    const std::string cube = values.add("Mul", Names{square, x});
    const std::string bent = values.add("Mul", Names{cube, values.scalar(0.044715F)});
    const std::string sum = values.add("Add", Names{x, bent});
    const auto factor = static_cast<float>(std::sqrt(2 / M_PI));
    inner = values.add("Tanh", Names{values.add("Mul", Names{sum, values.scalar(factor)})});
  } else {
    const auto factor = static_cast<float>(std::sqrt(0.5));
    inner = values.add("Erf", Names{values.add("Mul", Names{x, values.scalar(factor)})});
  }
  const std::string share = values.add("Add", Names{inner, values.scalar(1)});
  const std::string half = values.add("Mul", Names{x, values.scalar(0.5F)});
  values.add(outputOf(node), layout, "Mul", Names{half, share});
}

void convertSilu(OnnxValues& values, const Node& node, const Node*) {
  const Layout layout = layoutOf(values, node);
  const std::string x = values.in(layout, node.inputs[0]);
  values.add(outputOf(node), layout, "Mul", Names{x, values.add("Sigmoid", Names{x})});
}

void convertScale(OnnxValues& values, const Node& node, const Node*) {
  const Layout layout = layoutOf(values, node);
  const auto factor = static_cast<float>(node.attribute<double>("factor"));
  values.add(outputOf(node), layout, "Mul",
             Names{values.in(layout, node.inputs[0]), values.scalar(factor)});
}

void convertNormalise(OnnxValues& values, const Node& node, const Node*) {
  const OnnxAttribute to{"to", onnxType(DType::kFloat32)};
  const std::string x = values.in(Layout::kRows, node.inputs[0]);
  const std::string real = values.add("Cast", Names{x}, {&to, 1});
  const auto scale = static_cast<float>(node.attribute<double>("scale"));
  values.add(outputOf(node), Layout::kRows, "Mul", Names{real, values.scalar(scale)});
}

void convertCast(OnnxValues& values, const Node& node, const Node*) {
  const OnnxAttribute to{"to", onnxType(node.attribute<DType>("dtype"))};
  values.add(outputOf(node), Layout::kRows, "Cast", Names{values.in(Layout::kRows, node.inputs[0])},
             {&to, 1});
}

void convertExtremum(OnnxValues& values, const Node& node, const Node*) {
  values.add(outputOf(node), Layout::kRows, node.op == "Maximum" ? "Max" : "Min",
             inputsIn(values, Layout::kRows, node));
}

// ---- products

void convertMatMul(OnnxValues& values, const Node& node, const Node* bias) {
  const Attributes attributes = {{"transA", int64_t{node.attribute<bool>("transpose_a")}},
                                 {"transB", int64_t{node.attribute<bool>("transpose_b")}}};
  Names inputs = inputsIn(values, Layout::kRows, node);
  if (bias != nullptr) inputs.push_back(values.in(Layout::kRows, bias->inputs[1]));
  values.add(outputOf(bias == nullptr ? node : *bias), Layout::kRows, "Gemm", inputs, attributes);
}

void convertBiasAdd(OnnxValues& values, const Node& node, const Node*) {
  const std::array x = {node.inputs[0]};
  const Layout layout = values.layoutFor(x);
  if (layout == Layout::kRows) {
    values.add(outputOf(node), layout, "Add", inputsIn(values, layout, node));
    return;
  }
  const Weight& bias = weightOf(values, node.inputs[1], "the bias");
  const Ints dims = {bias.shape.dim(0), 1, 1};
  values.add(outputOf(node), layout, "Add",
             Names{values.in(layout, x[0]), values.constant(bias.name, dims, bias.values)});
}

// ---- images

Ints padsOf(const graph::Window& window) {
  return {window.height.before, window.width.before, window.height.after, window.width.after};
}

void convertConv2D(OnnxValues& values, const Node& node, const Node* bias) {
  const Weight& filter = weightOf(values, node.inputs[1], "the filter");
  const graph::Window window = graph::convolutionWindow(node.attributes, filter.shape);
  const Attributes attributes = {{"pads", padsOf(window)},
                                 {"strides", Ints{window.height.stride, window.width.stride}},
                                 {"dilations", Ints{window.height.dilation, window.width.dilation}},
                                 {"group", node.attribute<int64_t>("groups")}};
  const std::vector<float> turned = channelsFirst(filter.shape, filter.values);
  Names inputs = {values.in(Layout::kImages, node.inputs[0]),
                  values.constant(filter.name, channelsFirst(filter.shape).dims(), turned)};
  if (bias != nullptr) inputs.push_back(values.in(Layout::kRows, bias->inputs[1]));
  values.add(outputOf(bias == nullptr ? node : *bias), Layout::kImages, "Conv", inputs, attributes);
}

void convertPool(OnnxValues& values, const Node& node, const Node*) {
  const graph::Window window = graph::poolingWindow(node.attributes);
  Attributes attributes = {{"kernel_shape", Ints{window.height.size, window.width.size}},
                           {"pads", padsOf(window)},
                           {"strides", Ints{window.height.stride, window.width.stride}}};
  const bool max = node.op == "MaxPool";
  if (!max) attributes.push_back({"count_include_pad", int64_t{0}});
  values.add(outputOf(node), Layout::kImages, max ? "MaxPool" : "AveragePool",
             Names{values.in(Layout::kImages, node.inputs[0])}, attributes);
}

// ---- norms

void convertLayerNorm(OnnxValues& values, const Node& node, const Node*) {
  const Attributes attributes = {
      {"axis", int64_t{-1}}, {"epsilon", static_cast<float>(node.attribute<double>("epsilon"))}};
  values.add(outputOf(node), Layout::kRows, "LayerNormalization",
             inputsIn(values, Layout::kRows, node), attributes);
}

// With constant mean and variance it is one factor and one summand for each channel.
void convertBatchNorm(OnnxValues& values, const Node& node, const Node*) {
  const double epsilon = node.attribute<double>("epsilon");
  const Weight& scale = weightOf(values, node.inputs[1], "the scale");
  const Weight& offset = weightOf(values, node.inputs[2], "the offset");
  const Weight& mean = weightOf(values, node.inputs[3], "the mean");
  const Weight& variance = weightOf(values, node.inputs[4], "the variance");
  std::vector<float> factors, summands;
  for (size_t i = 0; i < scale.values.size(); ++i) {
    const double factor = scale.values[i] / std::sqrt(variance.values[i] + epsilon);
    factors.push_back(static_cast<float>(factor));
    summands.push_back(static_cast<float>(offset.values[i] - mean.values[i] * factor));
  }
  const std::array x = {node.inputs[0]};
  const Layout layout = values.layoutFor(x);
  const int64_t channels = scale.shape.dim(0);
  const Ints dims = layout == Layout::kImages ? Ints{channels, 1, 1} : Ints{channels};
  const std::string scaled = values.add(
      "Mul",
      Names{values.in(layout, x[0]), values.constant(node.name + "/factors", dims, factors)});
  values.add(outputOf(node), layout, "Add",
             Names{scaled, values.constant(node.name + "/summands", dims, summands)});
}

void convertSoftmax(OnnxValues& values, const Node& node, const Node*) {
  const OnnxAttribute axis{"axis", int64_t{-1}};
  values.add(outputOf(node), Layout::kRows, "Softmax",
             Names{values.in(Layout::kRows, node.inputs[0])}, {&axis, 1});
}

// ---- parts

void convertConcat(OnnxValues& values, const Node& node, const Node*) {
  const Layout layout = layoutOf(values, node);
  constexpr int64_t kImageAxes[] = {0, 2, 3, 1};
  int64_t axis = node.attribute<int64_t>("axis");
  if (layout == Layout::kImages) axis = kImageAxes[axis];
  const OnnxAttribute attribute{"axis", axis};
  values.add(outputOf(node), layout, "Concat", inputsIn(values, layout, node), {&attribute, 1});
}

// The first dimension is the input's, 0 to ONNX, or inferred, -1.
void convertReshape(OnnxValues& values, const Node& node, const Node*) {
  const Output x = node.inputs[0];
  const Shape& before = values.shapeOf(x);
  const Shape& after = node.attribute<Shape>("shape");
  if (const Weight* const held = values.weight(x)) {
    values.setWeight(outputOf(node), {held->name, after, held->values});
    return;
  }
  if (before.rank() == 0 || after.rank() == 0 || before.dim(0) % kAnyBatch != 0 ||
      after.dim(0) % kAnyBatch != 0)
    failOp("it puts several examples into one");
  Ints dims = after.dims();
  dims[0] = before.dim(0) == after.dim(0) ? 0 : -1;  // -1: each example has several rows, or had
  // With one position, or one channel, both orders are the same.
  const bool alike =
      values.isImages(x) && (before.dim(1) * before.dim(2) == 1 || before.dim(3) == 1);
  const std::string from = values.in(alike ? Layout::kImages : Layout::kRows, x);
  values.add(outputOf(node), Layout::kRows, "Reshape", Names{from, values.integers(dims)});
}

void convertSlice(OnnxValues& values, const Node& node, const Node*) {
  const Ints& begin = node.attribute<Shape>("begin").dims();
  const Ints& size = node.attribute<Shape>("size").dims();
  const Output x = node.inputs[0];
  if (begin.empty() || begin[0] != 0 || size[0] != values.shapeOf(x).dim(0))
    failOp("it takes some examples of a batch");
  Ints end, axes;
  for (size_t i = 1; i < begin.size(); ++i) {
    end.push_back(begin[i] + size[i]);
    axes.push_back(static_cast<int64_t>(i));
  }
  const Ints from(begin.begin() + 1, begin.end());
  values.add(outputOf(node), Layout::kRows, "Slice",
             Names{values.in(Layout::kRows, x), values.integers(from), values.integers(end),
                   values.integers(axes)});
}

void convertPad(OnnxValues& values, const Node& node, const Node*) {
  Ints pads = node.attribute<Shape>("before").dims();
  const Ints& after = node.attribute<Shape>("after").dims();
  if (pads.empty() || pads[0] != 0 || after[0] != 0) failOp("it adds examples to a batch");
  pads.insert(pads.end(), after.begin(), after.end());
  values.add(outputOf(node), Layout::kRows, "Pad",
             Names{values.in(Layout::kRows, node.inputs[0]), values.integers(pads)});
}

void convertGather(OnnxValues& values, const Node& node, const Node*) {
  const OnnxAttribute to{"to", onnxType(DType::kInt64)};
  const OnnxAttribute axis{"axis", int64_t{0}};
  const std::string indices =
      values.add("Cast", Names{values.in(Layout::kRows, node.inputs[1])}, {&to, 1});
  values.add(outputOf(node), Layout::kRows, "Gather",
             Names{values.in(Layout::kRows, node.inputs[0]), indices}, {&axis, 1});
}

// In opset 17 the axes of ReduceMean are an attribute, but of ReduceSum an input.
void convertReduction(OnnxValues& values, const Node& node, const Node*) {
  const Ints& axes = node.attribute<Shape>("axes").dims();
  if (axes.empty() || axes[0] == 0) failOp("it makes one of the examples of a batch");
  Names inputs = {values.in(Layout::kRows, node.inputs[0])};
  Attributes attributes = {{"keepdims", int64_t{node.attribute<bool>("keep_dims") ? 1 : 0}}};
  const bool mean = node.op == "Mean";
  if (mean)
    attributes.push_back({"axes", axes});
  else
    inputs.push_back(values.integers(axes));
  values.add(outputOf(node), Layout::kRows, mean ? "ReduceMean" : "ReduceSum", inputs, attributes);
}

const std::map<std::string_view, Convert>& conversions() {
  static const std::map<std::string_view, Convert> all = {
      {"Identity", convertAlike},
      {"Add", convertAlike},
      {"Sub", convertAlike},
      {"Mul", convertAlike},
      {"AddN", convertAlike},
      {"Abs", convertAlike},
      {"Relu", convertAlike},
      {"Sigmoid", convertAlike},
      {"Tanh", convertAlike},
      {"Cast", convertCast},
      {"Div", convertAlike},
      {"Maximum", convertExtremum},
      {"Minimum", convertExtremum},
      {"Elu", convertAlike},
      {"Softplus", convertAlike},
      {"Relu6", convertRelu6},
      {"LeakyRelu", convertLeakyRelu},
      {"Gelu", convertGelu},
      {"Silu", convertSilu},
      {"Scale", convertScale},
      {"Normalise", convertNormalise},
      {"MatMul", convertMatMul},
      {"BiasAdd", convertBiasAdd},
      {"Conv2D", convertConv2D},
      {"MaxPool", convertPool},
      {"AvgPool", convertPool},
      {"LayerNorm", convertLayerNorm},
      {"FusedBatchNormInference", convertBatchNorm},
      {"Softmax", convertSoftmax},
      {"Concat", convertConcat},
      {"Reshape", convertReshape},
      {"Slice", convertSlice},
      {"Pad", convertPad},
      {"Gather", convertGather},
      {"Mean", convertReduction},
      {"Sum", convertReduction},
  };
  return all;
}

}  // namespace

bool canConvert(const Node& node) {
  return conversions().contains(node.op);
}

bool takesBias(const Node& node) {
  return node.op == "MatMul" || node.op == "Conv2D";
}

void convertOp(OnnxValues& values, const Node& node, const Node* bias) {
  const auto found = conversions().find(node.op);
  DTF_CHECK_MSG(found != conversions().end(), node.op);
  DTF_CHECK(bias == nullptr || (takesBias(node) && bias->inputs[0] == outputOf(node)));
  found->second(values, node, bias);
}

}  // namespace dtf::model_files
