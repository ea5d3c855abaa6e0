#include "common/graph/graph.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/graph/op_def.h"
#include "common/graph/queue.h"

namespace dtf::graph {
namespace {

std::string_view typeName(AttributeDef::Type type) {
  switch (type) {
    case AttributeDef::Type::kBool:
      return "bool";
    case AttributeDef::Type::kInt:
      return "int";
    case AttributeDef::Type::kDouble:
      return "double";
    case AttributeDef::Type::kString:
      return "string";
    case AttributeDef::Type::kDType:
      return "dtype";
    case AttributeDef::Type::kShape:
      return "shape";
    case AttributeDef::Type::kFunction:
      return "function";
  }
  return "?";
}

// The order of Attribute's alternatives is the order of AttributeDef::Type.
AttributeDef::Type typeOf(const Attribute& value) {
  static_assert(std::variant_size_v<Attribute> == 7);
  return static_cast<AttributeDef::Type>(value.index());
}

Attribute zeroOf(AttributeDef::Type type) {
  switch (type) {
    case AttributeDef::Type::kBool:
      return false;
    case AttributeDef::Type::kInt:
      return int64_t{0};
    case AttributeDef::Type::kDouble:
      return 0.0;
    case AttributeDef::Type::kString:
      return std::string();
    case AttributeDef::Type::kDType:
      return DType::kFloat32;
    case AttributeDef::Type::kShape:
      return Shape();
    case AttributeDef::Type::kFunction:
      return FunctionRef();  // no function
  }
  return false;
}

[[noreturn]] void refuse(const NodeDef& def, const std::string& why) {
  throw Error(ErrorCode::kBadConfig, "node '" + def.name + "' (" + def.op + "): " + why);
}

std::string didYouMean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string nearest = nearestWord(word, candidates);
  return nearest.empty() ? "" : " - did you mean '" + nearest + "'?";
}

const OpDef& findOp(const OpCatalog& catalog, const NodeDef& def) {
  if (const OpDef* op = catalog.find(def.op)) return *op;
  refuse(def, "unknown op '" + def.op + "'" + didYouMean(def.op, catalog.names()));
}

void refuseUnknownAttributes(const OpDef& op, const NodeDef& def) {
  for (const auto& [name, value] : def.attributes) {
    std::vector<std::string_view> known;
    for (const AttributeDef& attribute : op.attributes) known.push_back(attribute.name);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    refuse(def, "unknown attribute '" + name + "'" + didYouMean(name, known));
  }
}

void completeAttributes(const OpDef& op, NodeDef& def) {
  refuseUnknownAttributes(op, def);
  for (const AttributeDef& attribute : op.attributes) {
    const auto found = def.attributes.find(attribute.name);
    if (found == def.attributes.end()) {
      if (attribute.required) refuse(def, "attribute '" + attribute.name + "' is missing");
      def.attributes.emplace(attribute.name, zeroOf(attribute.type));
    } else if (typeOf(found->second) != attribute.type) {
      refuse(def, "attribute '" + attribute.name + "' must be a " +
                      std::string(typeName(attribute.type)) + ", not a " +
                      std::string(typeName(typeOf(found->second))));
    }
  }
}

// Runs `work`, and adds the node's name to its errors.
template <class Work>
auto named(const NodeDef& def, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    refuse(def, error.message());
  }
}

}  // namespace

NodeId Graph::addNode(NodeDef def) {
  if (def.name.empty()) refuse(def, "a node needs a name");
  if (by_name_.contains(def.name)) refuse(def, "the name is taken by an earlier node");
  const OpDef& op = findOp(*catalog_, def);
  if (op.inputs >= 0 && def.inputs.size() != static_cast<size_t>(op.inputs)) {
    refuse(def, "takes " + std::to_string(op.inputs) + " input(s), got " +
                    std::to_string(def.inputs.size()));
  }
  completeAttributes(op, def);
  std::vector<TensorSpec> input_specs;
  for (const Output& input : def.inputs) {
    const bool node_exists =
        input.node.value >= 0 && std::cmp_less(input.node.value, nodes_.size());
    if (!node_exists || input.index < 0 ||
        std::cmp_greater_equal(input.index, node(input.node).outputs.size())) {
      refuse(def, "input " + std::to_string(input_specs.size()) +
                      " names an output that does not exist (node " +
                      std::to_string(input.node.value) + ", output " + std::to_string(input.index) +
                      ")");
    }
    input_specs.push_back(spec(input));
  }
  for (const NodeId before : def.control_inputs) {
    if (before.value < 0 || std::cmp_greater_equal(before.value, nodes_.size())) {
      refuse(def, "a control input names a node that does not exist");
    }
  }
  named(def, [&] { joinQueue(*this, def); });
  std::vector<TensorSpec> outputs =
      named(def, [&] { return op.infer(input_specs, def.attributes); });
  DTF_CHECK(std::in_range<int32_t>(nodes_.size()));
  const NodeId id{static_cast<int32_t>(nodes_.size())};
  by_name_.emplace(def.name, id);
  noteSuffix(def.name);
  nodes_.push_back(Node{.id = id,
                        .name = std::move(def.name),
                        .op = std::move(def.op),
                        .inputs = std::move(def.inputs),
                        .control_inputs = std::move(def.control_inputs),
                        .attributes = std::move(def.attributes),
                        .device = std::move(def.device),
                        .outputs = std::move(outputs)});
  return id;
}

const Node& Graph::node(NodeId id) const {
  DTF_CHECK(id.value >= 0 && std::cmp_less(id.value, nodes_.size()));
  return nodes_[static_cast<size_t>(id.value)];
}

const Node* Graph::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &node(found->second);
}

const TensorSpec& Graph::spec(Output output) const {
  const Node& source = node(output.node);
  DTF_CHECK(output.index >= 0 && std::cmp_less(output.index, source.outputs.size()));
  return source.outputs[static_cast<size_t>(output.index)];
}

std::string Graph::uniqueName(std::string_view prefix) const {
  std::string name(prefix);
  // Thousands of names may share a prefix.
  const auto known = suffixes_.find(prefix);
  int suffix = known == suffixes_.end() ? 0 : known->second;
  while (by_name_.contains(name)) name = std::string(prefix) + "_" + std::to_string(++suffix);
  return name;
}

void Graph::noteSuffix(const std::string& name) {
  const size_t mark = name.rfind('_');
  if (mark == std::string::npos) return;
  int& taken = suffixes_[name.substr(0, mark)];
  if (name.substr(mark + 1) == std::to_string(taken + 1)) ++taken;
}

bool appliesGradient(const Node& node) {
  return node.op == "ApplyGradient" || node.op == "ApplySparseGradient";
}

bool actsOnVariable(const Node& node) {
  static constexpr std::array<std::string_view, 18> kActions = {"ReadVariable",
                                                                "Assign",
                                                                "AssignAdd",
                                                                "AssignSub",
                                                                "ScatterAdd",
                                                                "ScatterUpdate",
                                                                "ApplyOptimizer",
                                                                "ApplySparseOptimizer",
                                                                "InitializeVariable",
                                                                "IsVariableInitialized",
                                                                "SyncReplicasTicket",
                                                                "AccumulatorApplyGradient",
                                                                "SparseAccumulatorApplyGradient",
                                                                kArriveOp,
                                                                "ApplyAccumulated",
                                                                "SyncReplicasFinish",
                                                                kPauseOp,
                                                                "SyncReplicasResume"};
  return std::find(kActions.begin(), kActions.end(), node.op) != kActions.end();
}

bool waitsForReplicas(const Node& node) {
  return node.op == kArriveOp || node.op == kPauseOp;
}

int64_t variablePlace(const Graph& graph, NodeId variable) {
  DTF_CHECK(graph.node(variable).op == "Variable");
  return std::count_if(graph.nodes().begin(), graph.nodes().begin() + variable.value,
                       [](const Node& node) { return node.op == "Variable"; });
}

std::span<const Output> variablesOf(const Node& node) {
  const std::span<const Output> inputs(node.inputs);
  if (!actsOnVariable(node)) return {};
  // The gradient and the step come last; the indices of rows between them.
  if (node.op == "ApplyOptimizer") return inputs.first(inputs.size() - 2);
  if (node.op == "ApplySparseOptimizer") return inputs.first(inputs.size() - 3);
  if (node.op == "ApplyAccumulated") return inputs.first(inputs.size() - 1);
  return inputs.first(1);
}

}  // namespace dtf::graph
