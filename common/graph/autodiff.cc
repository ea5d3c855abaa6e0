#include "common/graph/autodiff.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/shape_functions.h"

namespace dtf::graph {
namespace {

std::string outputText(const Graph& graph, Output output) {
  const Node& node = graph.node(output.node);
  return "'" + node.name + (output.index == 0 ? "" : ":" + std::to_string(output.index)) + "' (" +
         node.op + ", " + specText(graph.spec(output)) + ")";
}

void wantFloat(const Graph& graph, const Output& tensor) {
  if (graph.spec(tensor).dtype == DType::kFloat32) return;
  throw Error(ErrorCode::kBadConfig,
              outputText(graph, tensor) + " is not float32, so it has no gradient");
}

// One differentiation.
// Borrows: all constructor arguments; lives for one call.
class Differentiation {
 public:
  // `what` names the differentiated tensors in messages.
  Differentiation(Graph& graph, std::string what, std::span<const Output> with_respect_to,
                  const GradientTable& table)
      : graph_(graph),
        builder_(graph),
        what_(std::move(what)),
        with_respect_to_(with_respect_to),
        table_(table) {
    for (const Output& target : with_respect_to_) wantFloat(graph_, target);
    markInfluenced();
  }

  // dys: the gradients of ys; empty if they are all 1.
  std::vector<std::optional<Output>> run(std::span<const Output> ys, std::span<const Output> dys) {
    const auto names = builder_.nameScope("gradients");
    int32_t last = -1;
    for (size_t i = 0; i < ys.size(); ++i) {
      const auto device = builder_.deviceScope(graph_.node(ys[i].node).device);
      contributions_[ys[i]].push_back(dys.empty() ? builder_.constant(Shape(), 1) : dys[i]);
      last = std::max(last, ys[i].node.value);
    }
    // Creation order is topological: in reverse order, a node's gradients are complete when it is
    // visited.
    for (int32_t id = last; id >= 0; --id) visit(NodeId{id});
    std::vector<std::optional<Output>> gradients;
    for (const Output& target : with_respect_to_) gradients.push_back(sumOf(target));
    return gradients;
  }

 private:
  // A node is influenced if one of its inputs is a target or comes from an influenced node. Tensors
  // of whole numbers, such as indices, are constants.
  void markInfluenced() {
    influenced_.assign(graph_.nodes().size(), false);
    for (const Node& node : graph_.nodes()) {
      influenced_[static_cast<size_t>(node.id.value)] =
          std::any_of(node.inputs.begin(), node.inputs.end(),
                      [this](const Output& input) { return isInfluenced(input); });
    }
  }

  bool isInfluenced(const Output& output) const {
    DTF_CHECK(std::cmp_less(output.node.value, influenced_.size()));  // not a node of the gradients
    if (graph_.spec(output).dtype != DType::kFloat32) return false;
    return influenced_[static_cast<size_t>(output.node.value)] ||
           std::find(with_respect_to_.begin(), with_respect_to_.end(), output) !=
               with_respect_to_.end();
  }

  // Adds the gradients of a node's inputs, from the gradients of its outputs.
  void visit(NodeId id) {
    if (!influenced_[static_cast<size_t>(id.value)]) return;
    const Node node = graph_.node(id);  // a copy: adding nodes moves the originals
    std::vector<std::optional<Output>> output_gradients(node.outputs.size());
    for (size_t i = 0; i < output_gradients.size(); ++i) {
      output_gradients[i] = sumOf({id, static_cast<int32_t>(i)});
    }
    if (std::none_of(output_gradients.begin(), output_gradients.end(),
                     [](const auto& gradient) { return gradient.has_value(); })) {
      return;  // the loss doesn't depend on it
    }
    const GradientFunction* gradient = table_.find(node.op);
    if (gradient == nullptr) {
      throw Error(ErrorCode::kBadConfig, what_ + " can't be differentiated: node '" + node.name +
                                             "' is on the way, and " + node.op +
                                             " has no gradient");
    }
    std::vector<bool> wanted;
    for (const Output& input : node.inputs) wanted.push_back(isInfluenced(input));
    const auto names = builder_.nameScope(node.name + "_grad");
    const auto device = builder_.deviceScope(node.device);
    const auto gradients = (*gradient)(builder_, {node, output_gradients, wanted});
    DTF_CHECK_MSG(gradients.size() == node.inputs.size(), "the gradient of " + node.op);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (wanted[i] && gradients[i]) contributions_[node.inputs[i]].push_back(*gradients[i]);
    }
  }

  // Returns the sum of the consumers' contributions, built once; nullopt if there are none.
  std::optional<Output> sumOf(const Output& output) {
    const auto found = contributions_.find(output);
    if (found == contributions_.end()) return std::nullopt;
    std::vector<Output>& terms = found->second;
    DTF_CHECK(!terms.empty());
    if (terms.size() > 1) {
      // On the device of the terms, not of the tensor: a variable's gradient is summed before it is
      // sent to its ps.
      const auto device = builder_.deviceScope(graph_.node(terms[0].node).device);
      const auto names = builder_.nameScope(graph_.node(output.node).name + "_grad");
      terms = {builder_.addN(terms)};
    }
    return terms[0];
  }

  Graph& graph_;
  Builder builder_;
  const std::string what_;
  const std::span<const Output> with_respect_to_;  // lives for the call
  const GradientTable& table_;
  std::vector<bool> influenced_;  // by node, for the nodes that existed before
  std::map<Output, std::vector<Output>> contributions_;
};

}  // namespace

std::vector<Output> addGradients(Graph& graph, Output loss, std::span<const Output> with_respect_to,
                                 const GradientTable& table) {
  const TensorSpec& spec = graph.spec(loss);
  const std::string what = "the loss " + outputText(graph, loss);
  if (spec.dtype != DType::kFloat32 || spec.shape.rank() != 0)
    throw Error(ErrorCode::kBadConfig, what + " must be a float32 scalar; take the mean of it");
  Differentiation differentiation(graph, what, with_respect_to, table);
  const auto gradients = differentiation.run(std::span(&loss, 1), {});
  std::vector<Output> found;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i])
      throw Error(ErrorCode::kBadConfig, what + " does not depend on " +
                                             outputText(graph, with_respect_to[i]) +
                                             ", so it has no gradient");
    found.push_back(*gradients[i]);
  }
  return found;
}

std::vector<std::optional<Output>> addVectorJacobianProduct(Graph& graph,
                                                            std::span<const Output> ys,
                                                            std::span<const Output> dys,
                                                            std::span<const Output> xs,
                                                            const GradientTable& table) {
  DTF_CHECK(ys.size() == dys.size());
  if (ys.empty()) return std::vector<std::optional<Output>>(xs.size());
  for (const Output& y : ys) wantFloat(graph, y);
  Differentiation differentiation(graph, outputText(graph, ys[0]), xs, table);
  return differentiation.run(ys, dys);
}

}  // namespace dtf::graph
