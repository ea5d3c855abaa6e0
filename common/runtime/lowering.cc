#include "common/runtime/lowering.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/prune.h"

namespace dtf::runtime {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Output;

bool isPush(const Node& node) {
  return node.op == "_Push" || node.op == "_PushSparse" || graph::appliesGradient(node);
}

bool isParameter(const Node& node) {
  return node.op == "_Pull" || node.op == "Variable";
}

std::vector<NodeId> pushesOf(const Graph& graph) {
  std::vector<NodeId> pushes;
  for (const Node& node : graph.nodes()) {
    if (isPush(node)) pushes.push_back(node.id);
  }
  return pushes;
}

// Borrows: the graph, for one call of lower().
class Lowering {
 public:
  // `graph` contains only the nodes that the step needs.
  Lowering(const Graph& graph, std::span<const Output> fetches, const KnownValues& known)
      : graph_(graph), known_(known) {
    for (const Node& node : graph.nodes()) add(node);
    for (const Output& fetch : fetches) addFetch(fetch);
  }

  // Adds placeholders that this step doesn't read: callers bind all of them.
  void addUnread(const Graph& whole) {
    for (const Node& node : whole.nodes()) {
      if (node.op != "Placeholder" || graph_.find(node.name) != nullptr) continue;
      if (known_.contains(node.name)) continue;
      // No node of the graph has this number.
      const NodeId unread{-1 - static_cast<int32_t>(step_.inputs.size())};
      step_.inputs.push_back({node.name, {unread, 0}, node.outputs[0]});
    }
  }

  LoweredStep take() { return std::move(step_); }

 private:
  Output root(Output output) const {
    const auto at = roots_.find(output);
    return at == roots_.end() ? output : at->second;
  }

  void add(const Node& node) {
    if (node.op == "Placeholder") return addPlaceholder(node);
    if (node.op == "NoOp") return;
    if (isParameter(node)) {
      const std::string& name =
          node.op == "Variable" ? node.name : node.attribute<std::string>("variable");
      step_.parameters.push_back({name, {node.id, 0}, node.outputs[0]});
    } else if (isPush(node)) {
      addPush(node);
    } else if (graph::actsOnVariable(node) && isParameter(graph_.node(node.inputs[0].node))) {
      throw Error(ErrorCode::kBadConfig, "Node '" + node.name + "' (" + node.op +
                                             "): variables are read and assigned by the steps of a "
                                             "session, not by a training job's.");
    } else if (node.op == "_Send" || node.op == "_Recv") {
      throw Error(ErrorCode::kBadConfig, "Node '" + node.name + "' (" + node.op +
                                             "): a compiled step can't exchange single tensors "
                                             "with another task; place its ops on one task.");
    } else if (node.op == "Identity" || node.op == "Reshape") {
      roots_[{node.id, 0}] = root(node.inputs[0]);
    } else if (!addConstant(node)) {
      addOperation(node);
    }
  }

  void addPlaceholder(const Node& node) {
    const auto known = known_.find(node.name);
    if (known == known_.end()) {
      step_.inputs.push_back({node.name, {node.id, 0}, node.outputs[0]});
      return;
    }
    const Tensor& value = known->second;
    const graph::TensorSpec& spec = node.outputs[0];
    DTF_CHECK_MSG(value.dtype() == spec.dtype && value.shape() == spec.shape, node.name);
    step_.constants[{node.id, 0}] = {spec, 0, &value};
  }

  void addPush(const Node& node) {
    const bool local = graph::appliesGradient(node);
    const std::string name = local ? graph_.node(root(node.inputs[0]).node).name
                                   : node.attribute<std::string>("variable");
    for (const BoundTensor& other : step_.gradients) {
      if (other.name != name) continue;
      throw Error(ErrorCode::kBadConfig, "Node '" + node.name + "': variable '" + name +
                                             "' has a second gradient in the same step; add "
                                             "them up first.");
    }
    const Output gradient = node.inputs[local ? 1 : 0];
    step_.gradients.push_back({name, root(gradient), graph_.spec(gradient)});
  }

  // Adds a filled tensor that doesn't depend on fed values. Computes in float32, as kernels do.
  bool addConstant(const Node& node) {
    const auto constant = [this, &node](double value) {
      step_.constants[{node.id, 0}] = {node.outputs[0], value, nullptr};
      return true;
    };
    if (node.op == "Const") return constant(node.attribute<double>("value"));
    if (node.op == "ZerosLike") return constant(0);
    if (node.op != "MeanGrad") return false;
    const auto dy = step_.constants.find(root(node.inputs[0]));
    if (dy == step_.constants.end() || dy->second.elements != nullptr) return false;
    const auto elements = static_cast<float>(node.outputs[0].shape.elements());
    return constant(static_cast<float>(dy->second.value) / elements);
  }

  void addOperation(const Node& node) {
    Operation operation{node.name, node.op, node.attributes, {}, {}, {}, node.outputs};
    for (const Output& input : node.inputs) {
      operation.inputs.push_back(root(input));
      operation.input_specs.push_back(graph_.spec(input));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      operation.outputs.push_back({node.id, static_cast<int32_t>(i)});
    }
    step_.operations.push_back(std::move(operation));
  }

  void addFetch(Output fetch) {
    step_.fetches.push_back({graph_.node(fetch.node).name, root(fetch), graph_.spec(fetch)});
  }

  const Graph& graph_;
  const KnownValues& known_;
  std::map<Output, Output> roots_;  // the tensors behind Reshape and Identity
  LoweredStep step_;
};

}  // namespace

LoweredStep lower(const Graph& graph, std::span<const Output> fetches, const KnownValues& known) {
  const graph::Pruned pruned = graph::prune(graph, {}, fetches, pushesOf(graph));
  Lowering lowering(pruned.graph, pruned.fetches, known);
  lowering.addUnread(graph);
  return lowering.take();
}

void sortTopologically(std::vector<Operation>& operations) {
  std::map<Output, size_t> producers;
  for (size_t i = 0; i < operations.size(); ++i) {
    for (const Output& output : operations[i].outputs) producers[output] = i;
  }
  std::vector<bool> placed(operations.size(), false);
  std::vector<Operation> sorted;
  const auto ready = [&](const Operation& operation) {
    return std::all_of(operation.inputs.begin(), operation.inputs.end(), [&](const Output& input) {
      const auto producer = producers.find(input);
      return producer == producers.end() || placed[producer->second];
    });
  };
  // Quadratic in the worst case, but one sweep if the order is nearly right, as it is here.
  while (sorted.size() < operations.size()) {
    const size_t before = sorted.size();
    for (size_t i = 0; i < operations.size(); ++i) {
      if (placed[i] || !ready(operations[i])) continue;
      placed[i] = true;
      sorted.push_back(std::move(operations[i]));
    }
    DTF_CHECK_MSG(sorted.size() > before, "the operations have a cycle");
  }
  operations = std::move(sorted);
}

}  // namespace dtf::runtime
