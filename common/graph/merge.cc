#include "common/graph/merge.h"

#include <algorithm>
#include <bit>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/base/check.h"
#include "common/graph/graph_copy.h"
#include "common/graph/op_def.h"

namespace dtf::graph {
namespace {

bool mayMerge(const Graph& graph, const Node& node) {
  const OpDef* const op = graph.catalog().find(node.op);
  DTF_CHECK_MSG(op != nullptr, node.op);
  return !op->stateful && node.op != "Placeholder" && !node.outputs.empty();
}

// The computation of a node as bytes: equal bytes mean an equal computation. Each field is preceded
// by its length, so that different lists never give equal bytes.
class Fingerprint {
 public:
  explicit Fingerprint(NodeDef def) {
    text(def.op);
    text(def.device);
    number(def.inputs.size());
    for (const Output& input : def.inputs) {
      number(static_cast<uint64_t>(input.node.value));
      number(static_cast<uint64_t>(input.index));
    }
    // control inputs have no order
    std::sort(def.control_inputs.begin(), def.control_inputs.end());
    number(def.control_inputs.size());
    for (const NodeId before : def.control_inputs) number(static_cast<uint64_t>(before.value));
    for (const auto& [name, value] : def.attributes) {
      text(name);
      number(value.index());
      std::visit([this](const auto& held) { add(held); }, value);
    }
  }

  std::string take() { return std::move(bytes_); }

 private:
  void number(uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void text(const std::string& value) {
    number(value.size());
    bytes_ += value;
  }

  void add(bool value) { number(value ? 1 : 0); }
  void add(int64_t value) { number(static_cast<uint64_t>(value)); }
  void add(double value) { number(std::bit_cast<uint64_t>(value)); }  // -0.0 differs from 0.0
  void add(const std::string& value) { text(value); }
  void add(DType value) { number(static_cast<uint64_t>(value)); }
  void add(const Shape& value) {
    number(value.dims().size());
    for (const int64_t dim : value.dims()) number(static_cast<uint64_t>(dim));
  }
  // By identity: equal but distinct functions are rare, and comparing graphs is expensive.
  void add(const FunctionRef& value) { number(reinterpret_cast<uintptr_t>(value.get())); }

  std::string bytes_;
};

}  // namespace

Merged mergeCommon(const Graph& graph) {
  GraphCopy copy(graph);
  std::unordered_map<std::string, NodeId> first;  // by fingerprint: the node of the copy
  for (const Node& node : graph.nodes()) {
    NodeDef def = copy.mapped(node);
    if (!mayMerge(graph, node)) {
      copy.add(node.id, std::move(def));
      continue;
    }
    const auto [known, is_new] = first.try_emplace(Fingerprint(def).take());
    if (is_new) {
      known->second = copy.add(node.id, std::move(def));
    } else {
      copy.join(node.id, known->second);
    }
  }
  std::vector<NodeId> nodes = copy.nodes();
  return {copy.take(), std::move(nodes)};
}

}  // namespace dtf::graph
