#include "common/model_files/wanted_weights.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "common/base/check.h"
#include "common/model/model_graph.h"

namespace dtf::model_files {

namespace {

using graph::Node;
using graph::Output;

// Stands for the batch: no other dimension is likely to equal it.
constexpr int64_t kBatchOfAny = 7919;

// Whether both orders are the same: of images of one position, or one channel.
bool bothOrders(const Shape& images) {
  return images.dim(1) * images.dim(2) == 1 || images.dim(3) == 1;
}

std::vector<int64_t> channelsFirstRows(const Shape& images) {
  const int64_t positions = images.dim(1) * images.dim(2), channels = images.dim(3);
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(positions * channels));
  for (int64_t position = 0; position < positions; ++position)
    for (int64_t channel = 0; channel < channels; ++channel)
      rows.push_back(channel * positions + position);
  return rows;
}

// Tracks the order of the numbers through the graph that makes predictions.
class RowOrders {
 public:
  explicit RowOrders(const model::ModelGraph& model) : graph_(model.graph) {
    orders_.resize(graph_.nodes().size());
    lines_.resize(graph_.nodes().size());
    learned_.resize(graph_.nodes().size());
    for (const Node& node : graph_.nodes()) follow(node);
  }
  const RowOrder& of(Output x) const { return orders_[static_cast<size_t>(x.node.value)]; }

 private:
  const Shape& shape(Output x) const { return graph_.spec(x).shape; }
  bool learned(Output x) const { return learned_[static_cast<size_t>(x.node.value)]; }
  bool lines(Output x) const { return lines_[static_cast<size_t>(x.node.value)]; }

  void follow(const Node& node) {
    const auto at = static_cast<size_t>(node.id.value);
    learned_[at] =
        node.op == "Variable" || std::any_of(node.inputs.begin(), node.inputs.end(),
                                             [this](Output input) { return learned(input); });
    lines_[at] = makesLines(node);
    orders_[at] = orderOf(node);
  }

  // MatMul, Conv2D and LayerNorm read the last dimension as channels in any program.
  bool makesLines(const Node& node) const {
    if (node.inputs.empty() || node.op == "MatMul" || node.op == "Conv2D" || node.op == "LayerNorm")
      return false;
    const Output x = node.inputs[0];
    if (node.op == "Reshape") return linesAfter(x, node.outputs[0].shape);
    if (node.op == "Concat")
      return std::any_of(node.inputs.begin(), node.inputs.end(),
                         [this](Output input) { return lines(input); });
    return std::all_of(node.inputs.begin(), node.inputs.end(), [this, x](Output input) {
      return shape(input) != shape(x) || lines(input);
    });
  }

  bool linesAfter(Output x, const Shape& to) const {
    const Shape& from = shape(x);
    if (to.rank() == 4 || from.rank() == 0 || to.rank() == 0) return false;
    return (lines(x) || (from.rank() == 4 && !bothOrders(from))) &&
           from.dim(from.rank() - 1) == to.dim(to.rank() - 1);
  }

  RowOrder orderOf(const Node& node) const {
    if (node.inputs.empty() || node.op == "MatMul" || node.op == "Conv2D") return {};
    if (node.op == "Reshape") return reshaped(node.inputs[0], node.outputs[0].shape);
    if (node.op == "Concat") return concatenated(node);
    const RowOrder order = joined(node);
    const bool moves = node.op == "Slice" || node.op == "Pad" || node.op == "Transpose" ||
                       node.op == "While" || node.op == "If";
    if (!moves) return order;
    const bool images = node.op == "Transpose" && node.outputs[0].shape.rank() > 3;
    return {.known = order == RowOrder{} && !images, .channels_first = {}};
  }

  // Returns the order on which inputs of the first one's shape agree; smaller ones are broadcast.
  RowOrder joined(const Node& node) const {
    const Shape& first = shape(node.inputs[0]);
    for (const Output input : node.inputs)
      if (shape(input) == first && of(input) != of(node.inputs[0]))
        return {.known = false, .channels_first = {}};
    return of(node.inputs[0]);
  }

  // Returns the order of flattened images one after another.
  RowOrder concatenated(const Node& node) const {
    RowOrder all;
    bool alike = true;
    int64_t begin = 0;
    for (const Output input : node.inputs) {
      const RowOrder& order = of(input);
      all.known = all.known && order.known;
      alike = alike && order.channels_first.empty();
      const int64_t count = shape(input).rank() == 2 ? shape(input).dim(1) : 0;
      for (int64_t i = 0; i < count; ++i) {
        const size_t at = static_cast<size_t>(i);
        all.channels_first.push_back(begin +
                                     (order.channels_first.empty() ? i : order.channels_first[at]));
      }
      begin += count;
    }
    if (alike || !all.known) all.channels_first.clear();
    return all;
  }

  RowOrder reshaped(Output x, const Shape& to) const {
    const RowOrder& order = of(x);
    const Shape& from = shape(x);
    const RowOrder unknown{.known = false, .channels_first = {}};
    if (!order.known || from == to || from.rank() == 0 || to.rank() == 0) return order;
    if (!order.channels_first.empty()) return unknown;
    // The channels stay the last dimension.
    if (from.dim(from.rank() - 1) == to.dim(to.rank() - 1)) return {};
    if (lines(x)) return unknown;
    if (from.rank() == 4 && !bothOrders(from)) {
      if (to.rank() != 2 || to.dim(0) != from.dim(0)) return unknown;
      return {.known = true, .channels_first = channelsFirstRows(from)};
    }
    // An image made of learned numbers: another program would read them as channels, height, width.
    if (to.rank() >= 4 && learned(x) && !(to.rank() == 4 && bothOrders(to))) return unknown;
    return {};
  }

  const graph::Graph& graph_;
  std::vector<RowOrder> orders_;  // by node
  // By node: whether it holds an image's positions, each with its channels, in other dimensions
  // than height and width. Another program may have [channels, positions], and flatten that.
  std::vector<bool> lines_;
  std::vector<bool> learned_;  // by node: it depends on a variable
};

// Returns the variable that an op reads: a depthwise filter is reshaped before.
Output variableBehind(const graph::Graph& graph, Output x) {
  const Node& node = graph.node(x.node);
  return node.op == "Reshape" ? node.inputs[0] : x;
}

// Returns the node's inputs that are weights, with their use.
std::vector<std::pair<Output, WeightUse>> weightsOf(const graph::Graph& graph, const Node& node) {
  const std::vector<Output>& inputs = node.inputs;
  if (node.op == "MatMul") return {{inputs[1], WeightUse::kMatrix}};
  if (node.op == "Conv2D") return {{variableBehind(graph, inputs[1]), WeightUse::kFilter}};
  if (node.op == "Gather") return {{inputs[0], WeightUse::kTable}};
  std::vector<std::pair<Output, WeightUse>> found;
  if (node.op == "FusedBatchNormInference" || node.op == "LayerNorm")
    for (size_t i = 1; i < inputs.size(); ++i) found.emplace_back(inputs[i], WeightUse::kVector);
  return found;
}

}  // namespace

WantedModel wantedWeights(const model::ModelSpec& model) {
  const model::ModelGraph built = model::buildEvaluationGraph(model, kBatchOfAny);
  WantedModel wanted{model.input_shape, {}};
  std::map<Output, size_t> places;
  for (const model::ModelVariable& variable : built.variables) {
    const Shape& shape = built.graph.spec(variable.value).shape;
    const WeightUse use = shape.rank() == 1 ? WeightUse::kVector : WeightUse::kOther;
    places.emplace(variable.value, wanted.variables.size());
    wanted.variables.push_back({built.graph.node(variable.value.node).name, shape, use});
  }
  const RowOrders orders(built);
  for (const Node& node : built.graph.nodes()) {
    for (const auto& [weights, use] : weightsOf(built.graph, node)) {
      const auto place = places.find(weights);
      if (place == places.end()) continue;
      WantedWeights& variable = wanted.variables[place->second];
      variable.use = use;
      variable.is_depthwise = use == WeightUse::kFilter && weights != node.inputs[1];
      if (use != WeightUse::kTable) variable.rows = orders.of(node.inputs[0]);
      DTF_CHECK(use == WeightUse::kFilter || variable.rows.channels_first.empty() ||
                variable.rows.channels_first.size() == static_cast<size_t>(variable.shape.dim(0)));
    }
  }
  return wanted;
}

}  // namespace dtf::model_files
