#include "common/model/model_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/graph/function.h"

namespace dtf::model {

namespace {

using graph::Graph;
using graph::Node;

uint64_t elementsOf(const Graph& graph, const graph::Output& output) {
  return static_cast<uint64_t>(graph.spec(output).shape.elements());
}

uint64_t flopsOf(const Graph& graph, const Node& node);

// Returns the operations of one call.
uint64_t flopsOf(const graph::FunctionRef& function) {
  uint64_t flops = 0;
  if (function == nullptr) return flops;
  for (const Node& node : function->graph().nodes()) flops += flopsOf(function->graph(), node);
  return flops;
}

uint64_t flopsOf(const Graph& graph, const Node& node) {
  static constexpr std::array<std::string_view, 9> kFree = {"Placeholder", "Variable", "Const",
                                                            "Reshape",     "Identity", "Concat",
                                                            "Slice",       "Pad",      "Transpose"};
  if (node.op == "While") {  // at most
    const auto times = static_cast<uint64_t>(node.attribute<int64_t>("max_iterations"));
    return times * (flopsOf(node.attribute<graph::FunctionRef>("body")) +
                    flopsOf(node.attribute<graph::FunctionRef>("cond")));
  }
  if (node.outputs.empty() || std::find(kFree.begin(), kFree.end(), node.op) != kFree.end())
    return 0;
  const uint64_t outputs = elementsOf(graph, {node.id, 0});
  if (node.op == "MatMul") {
    const Shape& a = graph.spec(node.inputs[0]).shape;
    return 2 * outputs * static_cast<uint64_t>(a.dim(node.attribute<bool>("transpose_a") ? 0 : 1));
  }
  if (node.op == "Conv2D") {
    const Shape& filter = graph.spec(node.inputs[1]).shape;
    return 2 * outputs * static_cast<uint64_t>(filter.elements() / filter.dim(3));
  }
  // Poolings read more than they write, the others about as much.
  return std::max(outputs, elementsOf(graph, node.inputs[0]));
}

// Sums over a range of nodes.
struct Cost {
  uint64_t parameters = 0, flops = 0;
  Cost& operator-=(const Cost& other) {
    parameters -= other.parameters;
    flops -= other.flops;
    return *this;
  }
};

Cost costOf(const Graph& graph, const AddedLayer& layer) {
  Cost cost;
  for (int32_t i = layer.first_node; i < layer.end_node; ++i) {
    const Node& node = graph.node({i});
    if (node.op == "Variable") cost.parameters += elementsOf(graph, {node.id, 0});
    cost.flops += flopsOf(graph, node);
  }
  return cost;
}

// Returns the cost of the layer at `index` without the layers within it.
Cost ownCost(const ModelGraph& model, size_t index) {
  const AddedLayer& layer = model.layers[index];
  Cost cost = costOf(model.graph, layer);
  for (size_t i = index + 1; i < model.layers.size() && model.layers[i].depth > layer.depth; ++i)
    if (model.layers[i].depth == layer.depth + 1) cost -= costOf(model.graph, model.layers[i]);
  return cost;
}

Shape exampleOf(const Shape& shape) {
  return Shape(std::vector<int64_t>(shape.dims().begin() + 1, shape.dims().end()));
}

std::string flopsText(uint64_t flops) {
  const auto count = static_cast<double>(flops);
  if (flops >= 1'000'000'000) return fmt::format("{:.2f} G", count / 1e9);
  if (flops >= 1'000'000) return fmt::format("{:.2f} M", count / 1e6);
  return flops >= 1000 ? fmt::format("{:.1f} k", count / 1e3) : fmt::format("{}", flops);
}

}  // namespace

ModelTable tableOf(const ModelSpec& model) {
  const ModelGraph built = buildEvaluationGraph(model, 1);
  ModelTable table;
  table.input = Shape(model.input_shape);
  table.categories = model.categories;
  for (size_t i = 0; i < built.layers.size(); ++i) {
    const AddedLayer& layer = built.layers[i];
    const Cost own = ownCost(built, i);
    table.layers.push_back({layer.path, layer.text, layer.depth,
                            exampleOf(built.graph.spec(layer.output).shape), own.parameters,
                            own.flops});
    table.parameters += own.parameters;
    table.flops += own.flops;
  }
  return table;
}

std::string ModelTable::str() const {
  size_t width = 5;
  size_t shape_width = std::max<size_t>(6, input.str().size());
  for (const LayerRow& row : layers) {
    width = std::max(width, row.path.size());
    shape_width = std::max(shape_width, row.output.str().size());
  }
  std::string text = fmt::format("{:<{}}  {:<{}}  {:>12}  {:>10}  settings\n", "layer", width,
                                 "output", shape_width, "parameters", "FLOP");
  text += fmt::format("{:<{}}  {}\n", "input", width, input.str());
  for (const CategoryInput& each : categories)
    text += fmt::format("categories {}: [{}] {}\n", each.name, each.count,
                        each.meaning.empty() ? "whole numbers" : each.meaning);
  for (const LayerRow& row : layers)
    text += fmt::format("{:<{}}  {:<{}}  {:>12}  {:>10}  {}\n", row.path, width, row.output.str(),
                        shape_width, row.parameters == 0 ? "" : fmt::format("{}", row.parameters),
                        row.flops == 0 ? "" : flopsText(row.flops), row.text);
  return text + fmt::format("{:<{}}  {:<{}}  {:>12}  {:>10}  forwards, for one example\n", "total",
                            width, "", shape_width, parameters, flopsText(flops));
}

}  // namespace dtf::model
