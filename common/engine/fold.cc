#include "common/engine/fold.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/graph/graph_copy.h"
#include "common/graph/op_def.h"
#include "common/runtime/compiled_step.h"

namespace dtf::engine {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeDef;
using graph::NodeId;
using graph::Output;
using graph::TensorSpec;

template <class T>
std::optional<double> valueIfAlike(const Tensor& tensor) {
  const std::span<const T> elements = tensor.as<T>();
  if (elements.empty()) return std::nullopt;
  // Compares bits: 0.0 and -0.0 differ.
  const std::span<const std::byte> bytes = std::as_bytes(elements);
  for (size_t at = sizeof(T); at < bytes.size(); at += sizeof(T)) {
    if (!std::ranges::equal(bytes.subspan(at, sizeof(T)), bytes.first(sizeof(T))))
      return std::nullopt;
  }
  const auto value = static_cast<double>(elements[0]);
  // A Const can't represent NaN and large integers through a double.
  return static_cast<T>(value) == elements[0] ? std::optional(value) : std::nullopt;
}

std::optional<double> valueIfAlike(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return valueIfAlike<float>(tensor);
    case DType::kUInt8:
      return valueIfAlike<uint8_t>(tensor);
    case DType::kInt32:
      return valueIfAlike<int32_t>(tensor);
    case DType::kInt64:
      return std::nullopt;  // not every value is a double
    case DType::kBFloat16:
      break;
  }
  return std::nullopt;
}

// Such a node may compute for long, in much memory. Only a step has a deadline and can be aborted,
// on the device of the node.
bool callsFunctions(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const auto& attribute) {
    return std::holds_alternative<graph::FunctionRef>(attribute.second);
  });
}

// Folds one graph.
// Borrows: all constructor arguments, for one call of foldConstants().
class Folder {
 public:
  Folder(const Graph& graph, const runtime::KernelTable& kernels)
      : graph_(graph),
        kernels_(kernels),
        constant_(graph.nodes().size()),
        needed_(graph.nodes().size()) {}

  Folded run(std::span<const Output> fetches, std::span<const NodeId> targets,
             runtime::Device& device) {
    for (const Node& node : graph_.nodes()) constant_[indexOf(node.id)] = isConstant(node);
    findNeeded(fetches, targets);
    evaluate(device);
    graph::GraphCopy copy(graph_);
    for (const Node& node : graph_.nodes()) {
      if (!needed_[indexOf(node.id)]) continue;
      if (isFolded(node)) {
        replace(node, copy);
      } else {
        copy.add(node);
      }
    }
    Folded folded{.graph = Graph(graph_.catalog()), .fetches = {}, .targets = {}, .values = {}};
    for (const Output& fetch : fetches) folded.fetches.push_back(copy.map(fetch));
    for (const NodeId target : targets) folded.targets.push_back(copy.map(target));
    folded.graph = copy.take();
    folded.values = std::move(values_);
    return folded;
  }

 private:
  static size_t indexOf(NodeId node) { return static_cast<size_t>(node.value); }
  bool isFolded(const Node& node) const {
    return constant_[indexOf(node.id)] && node.op != "Const";
  }

  bool isConstant(const Node& node) const {
    if (!node.control_inputs.empty() || node.outputs.empty()) return false;
    for (const TensorSpec& spec : node.outputs) {
      if (spec.bytes() > kFoldedBytesMax) return false;
    }
    if (node.op == "Const") return true;
    const graph::OpDef* const op = graph_.catalog().find(node.op);
    DTF_CHECK_MSG(op != nullptr, node.op);
    if (op->stateful || node.inputs.empty() || callsFunctions(node)) return false;
    // Compiled steps do these without kernels.
    const bool is_free = node.op == "Reshape" || node.op == "Identity" || node.op == "ZerosLike";
    if (!is_free && !kernels_.has(node.op, runtime::DeviceType::kCpu)) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [this](const Output& input) { return constant_[indexOf(input.node)]; });
  }

  // Finds the nodes that are still needed when folded nodes need no inputs.
  void findNeeded(std::span<const Output> fetches, std::span<const NodeId> targets) {
    for (const Output& fetch : fetches) needed_[indexOf(fetch.node)] = true;
    for (const NodeId target : targets) needed_[indexOf(target)] = true;
    for (auto node = graph_.nodes().rbegin(); node != graph_.nodes().rend(); ++node) {
      if (!needed_[indexOf(node->id)] || isFolded(*node)) continue;
      for (const Output& input : node->inputs) needed_[indexOf(input.node)] = true;
      for (const NodeId before : node->control_inputs) needed_[indexOf(before)] = true;
    }
  }

  void evaluate(runtime::Device& device) {
    std::vector<Output> wanted;
    for (const Node& node : graph_.nodes()) {
      if (!needed_[indexOf(node.id)] || !isFolded(node)) continue;
      for (int32_t i = 0; std::cmp_less(i, node.outputs.size()); ++i)
        wanted.push_back({node.id, i});
    }
    if (wanted.empty()) return;
    // Pushes are ends of a compiled step, too, so only constant nodes go into it.
    graph::GraphCopy constants(graph_);
    for (const Node& node : graph_.nodes()) {
      if (constant_[indexOf(node.id)]) constants.add(node);
    }
    std::vector<Output> fetches;
    for (const Output& output : wanted) fetches.push_back(constants.map(output));
    const auto step = runtime::compile(constants.copy(), fetches, device, kernels_);
    step->run();
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::span<const std::byte> bytes = step->fetchBytes(static_cast<int>(i));
      const TensorSpec& spec = graph_.spec(wanted[i]);
      Tensor tensor(spec.dtype, spec.shape);
      DTF_CHECK(tensor.bytes() == bytes.size());
      std::copy(bytes.begin(), bytes.end(), tensor.data());
      computed_.emplace(wanted[i], std::move(tensor));
    }
  }

  void replace(const Node& node, graph::GraphCopy& copy) {
    for (int32_t i = 0; std::cmp_less(i, node.outputs.size()); ++i) {
      const TensorSpec& spec = node.outputs[static_cast<size_t>(i)];
      NodeDef def;
      def.name = i == 0 ? node.name : graph_.uniqueName(node.name + "/folded_" + std::to_string(i));
      def.attributes = {{"dtype", spec.dtype}, {"shape", spec.shape}};
      def.device = node.device;
      Tensor& value = computed_.at({node.id, i});
      if (const std::optional<double> alike = valueIfAlike(value)) {
        def.op = "Const";
        def.attributes.emplace("value", *alike);
      } else {
        def.op = "Placeholder";
        values_.emplace(def.name, std::move(value));
      }
      copy.addFor({node.id, i}, std::move(def));
    }
  }

  const Graph& graph_;
  const runtime::KernelTable& kernels_;
  std::vector<bool> constant_;  // by NodeId: a Const, or derived from constants
  std::vector<bool> needed_;    // by NodeId
  std::map<Output, Tensor> computed_;
  std::map<std::string, Tensor> values_;
};

}  // namespace

Folded foldConstants(const Graph& graph, std::span<const Output> fetches,
                     std::span<const NodeId> targets, runtime::Device& device,
                     const runtime::KernelTable& kernels) {
  return Folder(graph, kernels).run(fetches, targets, device);
}

}  // namespace dtf::engine
