#include "common/graph/graph_copy.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::graph {

NodeDef GraphCopy::mapped(const Node& node) const {
  NodeDef def{.name = node.name,
              .op = node.op,
              .inputs = {},
              .attributes = node.attributes,
              .control_inputs = {},
              .device = node.device};
  for (const Output& input : node.inputs) def.inputs.push_back(map(input));
  for (const NodeId before : node.control_inputs) def.control_inputs.push_back(map(before));
  return def;
}

NodeId GraphCopy::add(NodeId node, NodeDef def) {
  const NodeId added = copy_.addNode(std::move(def));
  join(node, added);
  return added;
}

NodeId GraphCopy::addFor(const Output& output, NodeDef def) {
  const NodeId added = copy_.addNode(std::move(def));
  DTF_CHECK(copy_.node(added).outputs[0] == source_.spec(output));
  const bool is_new = replaced_.emplace(output, Output{added}).second;
  DTF_CHECK(is_new);
  // Control edges to the node now lead to the replacement of its first output.
  if (output.index == 0) join(output.node, added);
  return added;
}

void GraphCopy::join(NodeId node, NodeId copied) {
  DTF_CHECK(node.value >= 0 && std::cmp_less(node.value, nodes_.size()));
  NodeId& place = nodes_[static_cast<size_t>(node.value)];
  DTF_CHECK(place.value < 0);
  place = copy_.node(copied).id;
}

bool GraphCopy::has(const Output& output) const {
  DTF_CHECK(output.node.value >= 0 && std::cmp_less(output.node.value, nodes_.size()));
  if (nodes_[static_cast<size_t>(output.node.value)].value < 0) return replaced_.contains(output);
  // A node with single replaced outputs has no copy of its other outputs.
  return replaced_.contains(output) || !replaced_.contains({output.node});
}

Output GraphCopy::map(const Output& output) const {
  const auto replaced = replaced_.find(output);
  return replaced != replaced_.end() ? replaced->second : Output{map(output.node), output.index};
}

NodeId GraphCopy::map(NodeId node) const {
  DTF_CHECK(node.value >= 0 && std::cmp_less(node.value, nodes_.size()));
  const NodeId copied = nodes_[static_cast<size_t>(node.value)];
  DTF_CHECK_MSG(copied.value >= 0, source_.node(node).name);
  return copied;
}

}  // namespace dtf::graph
