#include "common/graph/prune.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::graph {
namespace {

// The needed nodes and feeds, found from the end of the graph to its beginning.
struct Needs {
  std::vector<bool> nodes;          // by NodeId
  std::map<Output, bool> fed_used;  // for every feed, whether it is read

  void need(const Output& output) {
    const auto fed = fed_used.find(output);
    if (fed != fed_used.end()) {
      fed->second = true;
    } else {
      need(output.node);
    }
  }
  void need(NodeId node) {
    DTF_CHECK(node.value >= 0 && std::cmp_less(node.value, nodes.size()));
    nodes[static_cast<size_t>(node.value)] = true;
  }
};

Needs findNeeds(const Graph& graph, std::span<const Output> feeds, std::span<const Output> fetches,
                std::span<const NodeId> targets) {
  Needs needs;
  needs.nodes.assign(graph.nodes().size(), false);
  for (const Output& feed : feeds) {
    graph.spec(feed);  // checks that it exists
    needs.fed_used.emplace(feed, false);
  }
  for (const Output& fetch : fetches) {
    graph.spec(fetch);
    needs.need(fetch);
  }
  for (const NodeId target : targets) needs.need(graph.node(target).id);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (!needs.nodes[static_cast<size_t>(node->id.value)]) continue;
    for (const Output& input : node->inputs) needs.need(input);
    for (const NodeId before : node->control_inputs) needs.need(before);
  }
  return needs;
}

// Builds the pruned graph.
// Borrows: `source`, for one call of prune().
class Copy {
 public:
  explicit Copy(const Graph& source)
      : source_(source), pruned_(source.catalog()), nodes_(source.nodes().size()) {}

  void addFed(const Output& output) {
    const Node& node = source_.node(output.node);
    const TensorSpec& spec = source_.spec(output);
    NodeDef def;
    def.name = node.op == "Placeholder"
                   ? node.name
                   : source_.uniqueName(node.name + "/fed_" + std::to_string(output.index));
    def.op = "Placeholder";
    def.attributes = {{"dtype", spec.dtype}, {"shape", spec.shape}};
    def.device = node.device;
    const NodeId id = pruned_.addNode(std::move(def));
    fed_.emplace(output, Output{id});
    // Control edges to a Placeholder stay valid: the node is the same.
    if (node.op == "Placeholder") nodes_[static_cast<size_t>(node.id.value)] = id;
  }

  void addNode(const Node& node) {
    NodeId& copy = nodes_[static_cast<size_t>(node.id.value)];
    if (copy.value >= 0) return;
    NodeDef def{.name = node.name,
                .op = node.op,
                .inputs = {},
                .attributes = node.attributes,
                .control_inputs = {},
                .device = node.device};
    for (const Output& input : node.inputs) def.inputs.push_back(map(input));
    for (const NodeId before : node.control_inputs) def.control_inputs.push_back(map(before));
    copy = pruned_.addNode(std::move(def));
  }

  Output map(const Output& output) const {
    const auto fed = fed_.find(output);
    return fed != fed_.end() ? fed->second : Output{map(output.node), output.index};
  }

  NodeId map(NodeId node) const {
    DTF_CHECK(node.value >= 0 && std::cmp_less(node.value, nodes_.size()));
    const NodeId copy = nodes_[static_cast<size_t>(node.value)];
    DTF_CHECK(copy.value >= 0);
    return copy;
  }

  Graph take() { return std::move(pruned_); }

 private:
  const Graph& source_;
  Graph pruned_;
  std::vector<NodeId> nodes_;  // by the source's NodeId; -1 if not copied
  std::map<Output, Output> fed_;
};

}  // namespace

Pruned prune(const Graph& graph, std::span<const Output> feeds, std::span<const Output> fetches,
             std::span<const NodeId> targets) {
  const Needs needs = findNeeds(graph, feeds, fetches, targets);
  Copy copy(graph);
  for (const Node& node : graph.nodes()) {
    for (int32_t index = 0; std::cmp_less(index, node.outputs.size()); ++index) {
      const auto fed = needs.fed_used.find({node.id, index});
      if (fed != needs.fed_used.end() && fed->second) copy.addFed(fed->first);
    }
    if (needs.nodes[static_cast<size_t>(node.id.value)]) copy.addNode(node);
  }
  Pruned pruned{.graph = Graph(graph.catalog()), .feeds = {}, .fetches = {}, .targets = {}};
  for (const Output& feed : feeds) {
    const bool used = needs.fed_used.at(feed);
    pruned.feeds.push_back(used ? std::optional<Output>(copy.map(feed)) : std::nullopt);
  }
  for (const Output& fetch : fetches) pruned.fetches.push_back(copy.map(fetch));
  DTF_CHECK(pruned.feeds.size() == feeds.size());  // an output or nullopt for each feed
  for (const NodeId target : targets) pruned.targets.push_back(copy.map(target));
  pruned.graph = copy.take();
  return pruned;
}

NodeId findNode(const Graph& graph, std::string_view name) {
  if (const Node* node = graph.find(name)) return node->id;
  std::vector<std::string_view> names;
  names.reserve(graph.nodes().size());
  for (const Node& node : graph.nodes()) names.push_back(node.name);
  const std::string nearest = nearestWord(name, names);
  throw Error(ErrorCode::kBadConfig,
              "the graph has no node '" + std::string(name) + "'" +
                  (nearest.empty() ? "" : " - did you mean '" + nearest + "'?"));
}

Output findTensor(const Graph& graph, std::string_view name) {
  const size_t colon = name.rfind(':');
  int32_t index = 0;
  std::string_view node_name = name;
  if (colon != std::string_view::npos) {
    const auto [end, error] =
        std::from_chars(name.data() + colon + 1, name.data() + name.size(), index);
    if (error == std::errc() && end == name.data() + name.size()) node_name = name.substr(0, colon);
  }
  const Node& node = graph.node(findNode(graph, node_name));
  if (index < 0 || std::cmp_greater_equal(index, node.outputs.size())) {
    throw Error(ErrorCode::kBadConfig, "the graph has no tensor '" + std::string(name) +
                                           "': node '" + node.name + "' (" + node.op + ") has " +
                                           std::to_string(node.outputs.size()) + " output(s)");
  }
  return {node.id, index};
}

}  // namespace dtf::graph
