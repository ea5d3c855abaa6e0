#include "common/model_files/onnx_uses.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace dtf::model_files {

namespace {

// The known order of a tensor's numbers.
enum class Numbers : uint8_t {
  kUnknown,
  kInput,          // the model's input, in either order
  kChannelsFirst,  // images
  kChannelsLast,
  kChannelRows,  // channels-first images, flattened
  kRowsAsDtf,
  kInputRows,
};

bool isOneOf(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

// Whether the op leaves the numbers in their places.
bool keepsPlaces(std::string_view op) {
  return isOneOf(op, {"Abs",       "Add",      "BatchNormalization",
                      "Cast",      "Celu",     "Clip",
                      "Div",       "Dropout",  "Elu",
                      "Erf",       "Gelu",     "HardSigmoid",
                      "HardSwish", "Identity", "LayerNormalization",
                      "LeakyRelu", "Mish",     "Mul",
                      "Neg",       "PRelu",    "Relu",
                      "Selu",      "Sigmoid",  "Softplus",
                      "Softsign",  "Sqrt",     "Sub",
                      "Sum",       "Tanh"});
}

// Whether the op reads and returns images with channels first.
bool isOfImages(std::string_view op) {
  return isOneOf(op, {"AveragePool", "Conv", "ConvTranspose", "GlobalAveragePool", "GlobalMaxPool",
                      "InstanceNormalization", "LRN", "LpPool", "MaxPool", "Resize", "Upsample"});
}

WeightLayout layoutOfRows(Numbers read) {
  switch (read) {
    case Numbers::kInput:
    case Numbers::kInputRows:
      return WeightLayout::kInputRows;
    case Numbers::kChannelsFirst:
    case Numbers::kChannelRows:
      return WeightLayout::kChannelRows;
    case Numbers::kChannelsLast:
    case Numbers::kRowsAsDtf:
      return WeightLayout::kDtf;
    case Numbers::kUnknown:
      break;
  }
  return WeightLayout::kUnknownRows;
}

// Splits a name before its last part: "fc." and "bias".
std::pair<std::string_view, std::string_view> parted(std::string_view name) {
  const size_t at = name.find_last_of("./");
  return at == std::string_view::npos ? std::pair{std::string_view(), name}
                                      : std::pair{name.substr(0, at + 1), name.substr(at + 1)};
}

class Uses {
 public:
  Uses(const std::set<std::string>& weights, const std::set<std::string>& inputs)
      : weights_(weights) {
    for (const std::string& name : inputs) numbers_[name] = Numbers::kInput;
  }

  void read(const OnnxNode& node) {
    if (node.outputs.empty()) return;
    if (node.inputs.empty()) {
      constants_.insert(node.outputs[0]);
      return;
    }
    noteWeights(node);
    numbers_[node.outputs[0]] = numbersOf(node);
  }
  std::map<std::string, OnnxUse> take() { return std::move(uses_); }

 private:
  Numbers at(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? Numbers::kUnknown : found->second;
  }
  bool isWeight(const std::string& name) const {
    return weights_.contains(name) || turned_.contains(name);
  }

  void note(const std::string& name, OnnxUse use) {
    const auto turned = turned_.find(name);
    const std::string& weight = turned == turned_.end() ? name : turned->second;
    if (!weights_.contains(weight)) return;
    if (turned != turned_.end()) {
      if (use.turn == OnnxUse::Turn::kFilter) use.refused = "a Transpose turns the filter";
      use.turn =
          use.turn == OnnxUse::Turn::kNone ? OnnxUse::Turn::kTransposed : OnnxUse::Turn::kNone;
    }
    const auto [before, is_new] = uses_.emplace(weight, use);
    if (!is_new && before->second != use) before->second.refused = "the model uses it in two ways";
  }

  void noteWeights(const OnnxNode& node) {
    const WeightLayout rows = layoutOfRows(at(node.inputs[0]));
    const size_t count = node.inputs.size();
    if (node.op == "Transpose" && weights_.contains(node.inputs[0]) &&
        (node.perm.empty() || node.perm == std::vector<int64_t>{1, 0}))
      turned_[node.outputs[0]] = node.inputs[0];
    if (node.op == "Gather") note(node.inputs[0], {.layout = WeightLayout::kChannelRows});
    if (node.op == "Conv" && count > 1)
      note(node.inputs[1], {.turn = OnnxUse::Turn::kFilter, .layout = WeightLayout::kChannelRows});
    if (node.op == "Conv" && count > 2)
      note(node.inputs[2], {.layout = WeightLayout::kChannelRows});
    if (node.op == "Gemm" && count > 1) noteGemm(node, rows);
    if (node.op == "MatMul" && count > 1 && isWeight(node.inputs[1])) {
      products_[node.outputs[0]] = node.inputs[1];
      note(node.inputs[1], {.layout = rows});
    }
    if (node.op == "Add" && count == 2) noteSum(node);
    if (isOneOf(node.op, {"BatchNormalization", "LayerNormalization"}))
      for (size_t i = 1; i < count; ++i) note(node.inputs[i], {.layout = rows});
  }

  void noteGemm(const OnnxNode& node, WeightLayout rows) {
    OnnxUse use{.turn = node.trans_b ? OnnxUse::Turn::kTransposed : OnnxUse::Turn::kNone,
                .layout = rows};
    if (node.trans_a || node.alpha != 1 || node.beta != 1)
      use.refused = "its Gemm has transA, alpha or beta, which dtf's dense layer lacks";
    note(node.inputs[1], use);
    if (node.inputs.size() > 2) note(node.inputs[2], {.layout = WeightLayout::kChannelRows});
  }

  // Names a matrix after its bias where the exporter gives it only a number.
  void noteSum(const OnnxNode& node) {
    for (const size_t i : {0, 1}) {
      const std::string& bias = node.inputs[1 - i];
      const auto product = products_.find(node.inputs[i]);
      if (product == products_.end() || !weights_.contains(bias)) continue;
      note(bias, {.layout = WeightLayout::kChannelRows});
      const auto [layer, word] = parted(bias);
      const auto use = uses_.find(product->second);
      if (use != uses_.end() && product->second.starts_with("onnx::") && word == "bias")
        use->second.name = std::string(layer) + "weight";
    }
  }

  Numbers numbersOf(const OnnxNode& node) const {
    const Numbers x = at(node.inputs[0]);
    if (isOfImages(node.op)) return Numbers::kChannelsFirst;
    if (keepsPlaces(node.op)) return joined(node);
    if (node.op == "Concat") {
      const bool of_channels = (x == Numbers::kChannelsFirst && node.axis == 1) ||
                               (x == Numbers::kChannelsLast && node.axis == 3);
      return of_channels ? joined(node) : Numbers::kUnknown;
    }
    if (node.op == "Transpose") return transposed(x, node.perm);
    if (node.op == "Reshape" || (node.op == "Flatten" && node.axis == 1)) return flattened(x);
    return Numbers::kUnknown;
  }

  // Returns the order on which all inputs agree. Weights and constants don't count.
  Numbers joined(const OnnxNode& node) const {
    std::optional<Numbers> all;
    for (const std::string& input : node.inputs) {
      if (input.empty() || weights_.contains(input) || constants_.contains(input)) continue;
      if (all && *all != at(input)) return Numbers::kUnknown;
      all = at(input);
    }
    return all.value_or(Numbers::kUnknown);
  }

  static Numbers transposed(Numbers x, const std::vector<int64_t>& perm) {
    const bool to_last = perm == std::vector<int64_t>{0, 2, 3, 1};
    const bool to_first = perm == std::vector<int64_t>{0, 3, 1, 2};
    if (to_last && (x == Numbers::kChannelsFirst || x == Numbers::kInput))
      return Numbers::kChannelsLast;
    if (to_first && (x == Numbers::kChannelsLast || x == Numbers::kInput))
      return Numbers::kChannelsFirst;
    return Numbers::kUnknown;
  }

  // The numbers stay in their order.
  static Numbers flattened(Numbers x) {
    switch (x) {
      case Numbers::kChannelsFirst:
        return Numbers::kChannelRows;
      case Numbers::kChannelsLast:
        return Numbers::kRowsAsDtf;
      case Numbers::kInput:
        return Numbers::kInputRows;
      default:
        return x;
    }
  }

  const std::set<std::string>& weights_;
  std::set<std::string> constants_;
  std::map<std::string, Numbers> numbers_;
  std::map<std::string, std::string> turned_;    // by the output of a Transpose: the weight
  std::map<std::string, std::string> products_;  // by the output of a MatMul: the weight
  std::map<std::string, OnnxUse> uses_;
};

}  // namespace

std::map<std::string, OnnxUse> onnxUses(std::span<const OnnxNode> nodes,
                                        const std::set<std::string>& weights,
                                        const std::set<std::string>& inputs) {
  Uses uses(weights, inputs);
  for (const OnnxNode& node : nodes) uses.read(node);
  return uses.take();
}

}  // namespace dtf::model_files
