#include "common/model/model_memory.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "common/base/check.h"

namespace dtf::model {

namespace {

using graph::Graph;
using graph::Node;
using graph::Output;

// Returns the tensor that this one is a reshape of: both share their memory.
Output rootOf(const Graph& graph, Output tensor) {
  for (const Node* node = &graph.node(tensor.node); node->op == "Reshape" || node->op == "Identity";
       node = &graph.node(tensor.node))
    tensor = node->inputs[0];
  return tensor;
}

bool isComputed(const Node& node) {
  return node.op != "Variable" && node.op != "Placeholder" && node.op != "Const";
}

uint64_t bytesOf(const graph::TensorSpec& spec) {
  uint64_t bytes = 0;
  return __builtin_mul_overflow(static_cast<uint64_t>(spec.shape.elements()),
                                dtypeBytes(spec.dtype), &bytes)
             ? UINT64_MAX
             : bytes;
}

void addSaturating(uint64_t& sum, uint64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = UINT64_MAX;
}

// Returns the tensors that nodes up to the loss compute and nodes after it read.
std::set<Output> keptOf(const ModelGraph& model) {
  const Graph& graph = model.graph;
  // The accuracy comes after the loss, and no gradient reads it.
  const int32_t last_forward =
      std::max(model.loss.node, model.accuracy.value_or(model.loss).node).value;
  // A pooling that shares a kernel with its input keeps only its own result.
  std::set<Output> pooled;
  std::set<Output> kept;
  for (const Node& node : graph.nodes())
    for (const Output& input : node.inputs) {
      const Output root = rootOf(graph, input);
      if (node.op == "MaxPool") pooled.insert(root);
      if (node.id.value > last_forward && root.node.value <= last_forward &&
          isComputed(graph.node(root.node)))
        kept.insert(root);
    }
  for (const Output& tensor : pooled) kept.erase(tensor);
  return kept;
}

// Returns the place in ModelGraph::layers of the innermost layer that has the node. Layers are in
// the order of their first nodes, outer before inner ones.
std::optional<size_t> innermost(const ModelGraph& model, int32_t node) {
  const auto behind = std::ranges::upper_bound(model.layers, node, {}, &AddedLayer::first_node);
  for (auto layer = behind; layer != model.layers.begin();) {
    --layer;
    if (node < layer->end_node) return static_cast<size_t>(layer - model.layers.begin());
    if (layer->depth == 0) break;
  }
  return std::nullopt;
}

}  // namespace

KeptTensors keptTensors(const ModelGraph& model) {
  DTF_CHECK(!model.variables.empty() && model.variables[0].update.has_value());
  std::vector<uint64_t> by_layer(model.layers.size(), 0);
  KeptTensors result;
  // Skips the scaled input and the loss's own tensors: a kernel may do without them.
  for (const Output& tensor : keptOf(model)) {
    const std::optional<size_t> layer = innermost(model, tensor.node.value);
    if (!layer) continue;
    const uint64_t bytes = bytesOf(model.graph.spec(tensor));
    addSaturating(result.bytes, bytes);
    addSaturating(by_layer[*layer], bytes);
  }
  const auto largest = std::max_element(by_layer.begin(), by_layer.end());
  if (largest == by_layer.end() || *largest == 0) return result;
  result.largest_layer = model.layers[static_cast<size_t>(largest - by_layer.begin())].path;
  result.largest_bytes = *largest;
  return result;
}

}  // namespace dtf::model
