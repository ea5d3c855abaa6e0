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

// One differentiation.
// Borrows: everything it is made with; lives for one call of addGradients.
class Differentiation {
 public:
  Differentiation(Graph& graph, Output loss, std::span<const Output> with_respect_to,
                  const GradientTable& table)
      : graph_(graph),
        builder_(graph),
        loss_(loss),
        with_respect_to_(with_respect_to),
        table_(table) {}

  std::vector<Output> run() {
    validate();
    markInfluenced();
    const auto names = builder_.nameScope("gradients");
    {
      const auto device = builder_.deviceScope(graph_.node(loss_.node).device);
      contributions_[loss_].push_back(builder_.constant(Shape(), 1));
    }
    // Creation order is topological: going down, a node's gradients are complete when it is
    // reached.
    for (int32_t id = loss_.node.value; id >= 0; --id) visit(NodeId{id});
    std::vector<Output> gradients;
    for (const Output& target : with_respect_to_) gradients.push_back(gradientOf(target));
    return gradients;
  }

 private:
  void validate() const {
    const TensorSpec& loss = graph_.spec(loss_);
    if (loss.dtype != DType::kFloat32 || loss.shape.rank() != 0) {
      throw Error(ErrorCode::kBadConfig, "the loss " + outputText(graph_, loss_) +
                                             " must be a float32 scalar; take the mean of it");
    }
    for (const Output& target : with_respect_to_) {
      if (graph_.spec(target).dtype == DType::kFloat32) continue;
      throw Error(ErrorCode::kBadConfig,
                  outputText(graph_, target) + " is not float32, so it has no gradient");
    }
  }

  // A node is influenced when one of its inputs is a target or comes from an influenced node.
  void markInfluenced() {
    influenced_.assign(graph_.nodes().size(), false);
    for (const Node& node : graph_.nodes()) {
      influenced_[static_cast<size_t>(node.id.value)] =
          std::any_of(node.inputs.begin(), node.inputs.end(),
                      [this](const Output& input) { return isInfluenced(input); });
    }
  }

  bool isInfluenced(const Output& output) const {
    DTF_CHECK(std::cmp_less(output.node.value, influenced_.size()));  // none of the gradients'
    return influenced_[static_cast<size_t>(output.node.value)] ||
           std::find(with_respect_to_.begin(), with_respect_to_.end(), output) !=
               with_respect_to_.end();
  }

  // Takes the gradients of a node's outputs to its inputs.
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
      throw Error(ErrorCode::kBadConfig,
                  "the loss " + outputText(graph_, loss_) + " can't be differentiated: node '" +
                      node.name + "' is on the way, and " + node.op + " has no gradient");
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

  // The sum of what consumers contributed, made once; nullopt when none did.
  std::optional<Output> sumOf(const Output& output) {
    const auto found = contributions_.find(output);
    if (found == contributions_.end()) return std::nullopt;
    std::vector<Output>& terms = found->second;
    DTF_CHECK(!terms.empty());
    if (terms.size() > 1) {
      // Where the terms are, not where the tensor is: a variable's gradient is summed before it
      // goes to its ps.
      const auto device = builder_.deviceScope(graph_.node(terms[0].node).device);
      const auto names = builder_.nameScope(graph_.node(output.node).name + "_grad");
      terms = {builder_.addN(terms)};
    }
    return terms[0];
  }

  Output gradientOf(const Output& target) {
    if (const std::optional<Output> gradient = sumOf(target)) return *gradient;
    throw Error(ErrorCode::kBadConfig, "the loss " + outputText(graph_, loss_) +
                                           " does not depend on " + outputText(graph_, target) +
                                           ", so it has no gradient");
  }

  Graph& graph_;
  Builder builder_;
  const Output loss_;
  const std::span<const Output> with_respect_to_;  // lives for the call
  const GradientTable& table_;
  std::vector<bool> influenced_;  // by node, of the nodes that were there before
  std::map<Output, std::vector<Output>> contributions_;
};

}  // namespace

std::vector<Output> addGradients(Graph& graph, Output loss, std::span<const Output> with_respect_to,
                                 const GradientTable& table) {
  return Differentiation(graph, loss, with_respect_to, table).run();
}

}  // namespace dtf::graph
