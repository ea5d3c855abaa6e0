#include "common/graph/function.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"

namespace dtf::graph {
namespace {

[[noreturn]] void refuseFunction(const std::string& why) {
  throw Error(ErrorCode::kBadConfig, "a function " + why);
}

bool exists(const Graph& graph, const Output& output) {
  return output.node.value >= 0 && std::cmp_less(output.node.value, graph.nodes().size()) &&
         output.index >= 0 && std::cmp_less(output.index, graph.node(output.node).outputs.size());
}

}  // namespace

Function::Function(Graph graph, std::vector<NodeId> parameters, std::vector<Output> results)
    : graph_(std::move(graph)), parameters_(std::move(parameters)), results_(std::move(results)) {
  check();
  measure();
}

FunctionRef Function::make(Graph graph, std::vector<NodeId> parameters,
                           std::vector<Output> results) {
  return FunctionRef(new Function(std::move(graph), std::move(parameters), std::move(results)));
}

FunctionRef Function::build(const OpCatalog& catalog, std::span<const TensorSpec> parameters,
                            const Build& build) {
  Graph graph(catalog);
  Builder builder(graph);
  std::vector<NodeId> nodes;
  std::vector<Output> outputs;
  for (const TensorSpec& spec : parameters) {
    outputs.push_back(
        builder.placeholder("parameter_" + std::to_string(nodes.size()), spec.dtype, spec.shape));
    nodes.push_back(outputs.back().node);
  }
  std::vector<Output> results = build(builder, outputs);
  return make(std::move(graph), std::move(nodes), std::move(results));
}

void Function::check() const {
  std::vector<bool> is_parameter(graph_.nodes().size(), false);
  for (const NodeId parameter : parameters_) {
    if (!exists(graph_, {parameter, 0}) || graph_.node(parameter).op != "Placeholder")
      refuseFunction("has a parameter that is no Placeholder");
    if (is_parameter[static_cast<size_t>(parameter.value)])
      refuseFunction("has the parameter '" + graph_.node(parameter).name + "' twice");
    is_parameter[static_cast<size_t>(parameter.value)] = true;
  }
  for (const Node& node : graph_.nodes()) {
    if (node.op == "Placeholder") {
      if (is_parameter[static_cast<size_t>(node.id.value)]) continue;
      refuseFunction("reads the Placeholder '" + node.name + "', which is none of its parameters");
    }
    if (graph_.catalog().find(node.op)->stateful)
      refuseFunction("holds node '" + node.name + "' (" + node.op +
                     "), but may only compute: give it its inputs as arguments");
  }
  for (const Output& result : results_)
    if (!exists(graph_, result)) refuseFunction("has a result that no node of it makes");
}

void Function::measure() {
  nodes_ = graph_.nodes().size();
  for (const Node& node : graph_.nodes()) {
    nodes_ += calledNodes(node);
    const bool is_loop = node.op == "While";
    int64_t inner = 0;  // a loop runs its cond and its body, an If one of its branches
    for (const auto& [name, value] : node.attributes) {
      const FunctionRef* const called = std::get_if<FunctionRef>(&value);
      if (called == nullptr || *called == nullptr) continue;
      depth_ = std::max(depth_, 1 + (*called)->depth_);
      const int64_t more = (*called)->iterations_;
      inner = is_loop ? inner + more : std::max(inner, more);
    }
    if (is_loop) inner = node.attribute<int64_t>("max_iterations") * std::max<int64_t>(1, inner);
    // No node exceeds the limit: checked when it was added, or here for the functions of an If.
    iterations_ = std::min(iterations_ + inner, kIterationsMax + 1);
  }
  if (nodes_ > kNodesMax)
    refuseFunction("has " + std::to_string(nodes_) + " nodes, with every call of a function " +
                   "counted; the most is " + std::to_string(kNodesMax));
  if (iterations_ > kIterationsMax)
    refuseFunction("has loops of more than " + std::to_string(kIterationsMax) +
                   " iterations together, those within loops multiplied");
  if (depth_ > kDepthMax)
    refuseFunction("calls functions " + std::to_string(depth_) + " deep; the most is " +
                   std::to_string(kDepthMax));
}

std::vector<TensorSpec> Function::parameterSpecs() const {
  std::vector<TensorSpec> specs;
  for (const NodeId parameter : parameters_) specs.push_back(graph_.spec({parameter, 0}));
  return specs;
}

std::vector<TensorSpec> Function::resultSpecs() const {
  std::vector<TensorSpec> specs;
  for (const Output& result : results_) specs.push_back(graph_.spec(result));
  return specs;
}

uint64_t calledNodes(const Node& node) {
  uint64_t nodes = 0;
  for (const auto& [name, value] : node.attributes) {
    const FunctionRef* const called = std::get_if<FunctionRef>(&value);
    if (called != nullptr && *called != nullptr) nodes += (*called)->nodes();
  }
  return nodes;
}

}  // namespace dtf::graph
