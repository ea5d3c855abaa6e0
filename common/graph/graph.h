#pragma once

// The dataflow graph: nodes (ops) with typed, shaped outputs, data edges and control edges. Shapes
// are inferred as nodes are added, so the shapes of an existing graph fit.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace dtf::graph {

class Graph;
class OpCatalog;

struct NodeId {
  int32_t value = -1;
  auto operator<=>(const NodeId&) const = default;
};

// The index-th output of a node.
struct Output {
  NodeId node;
  int32_t index = 0;
  auto operator<=>(const Output&) const = default;
};

struct TensorSpec {
  DType dtype = DType::kFloat32;
  Shape shape;
  size_t bytes() const { return static_cast<size_t>(shape.elements()) * dtypeBytes(dtype); }
  bool operator==(const TensorSpec&) const = default;
};

class Function;  // function.h
using FunctionRef = std::shared_ptr<const Function>;

using Attribute = std::variant<bool, int64_t, double, std::string, DType, Shape, FunctionRef>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

struct Node {
  NodeId id;
  std::string name;  // unique in the graph: "softmax/weights"
  std::string op;    // a name in the OpCatalog: "MatMul"
  std::vector<Output> inputs;
  std::vector<NodeId> control_inputs;
  Attributes attributes;
  // the constraint ("/job:ps/task:0", partial or empty); once placed, a full device
  std::string device;
  std::vector<TensorSpec> outputs;  // inferred

  // Errors: DTF_CHECK if it is missing or has another type: the catalogue has validated it.
  template <class T>
  const T& attribute(std::string_view key) const {
    const auto found = attributes.find(key);
    DTF_CHECK_MSG(found != attributes.end() && std::holds_alternative<T>(found->second),
                  name + " (" + op + "): attribute " + std::string(key));
    return std::get<T>(found->second);
  }
};

// Returns whether the node applies the gradient in its second input to the variable in its first:
// ApplyGradient, ApplySparseGradient.
bool appliesGradient(const Node& node);

// Of the ops on variables, those that may wait: for other replicas, and for the end of a pause.
inline constexpr std::string_view kArriveOp = "SyncReplicasArrive";
inline constexpr std::string_view kPauseOp = "SyncReplicasPause";
// Returns whether it acts on the barrier of synchronous replicas, and may wait there.
bool waitsForReplicas(const Node& node);

// The most replicas of a variable, and gradients of one step.
inline constexpr int64_t kReplicasMax = 4096;

// Returns whether the node reads or assigns the variable in its first input when it runs:
// ReadVariable, Assign, AssignAdd, AssignSub, ScatterAdd, ScatterUpdate, InitializeVariable,
// IsVariableInitialized, ApplyOptimizer, ApplySparseOptimizer, and the ops of standard_sync_ops.cc.
bool actsOnVariable(const Node& node);

// Returns the inputs that stand for variables: of a node that acts on one, the first; of an update
// of an optimizer also its slots, and the version of ApplyAccumulated. Valid as long as the node.
std::span<const Output> variablesOf(const Node& node);

// Returns the number of Variable nodes before `variable`: by it a seed gives variables of equal
// shape different initial values.
int64_t variablePlace(const Graph& graph, NodeId variable);

// The definition of a new node. An omitted optional attribute gets its type's zero.
struct NodeDef {
  std::string name;
  std::string op;
  std::vector<Output> inputs;
  Attributes attributes;
  std::vector<NodeId> control_inputs = {};
  std::string device = {};
};

// Owns its nodes; nodes are never removed (prune() makes a new graph).
// Borrows: `catalog`, which must outlive it.
// Threads: thread-compatible.
// Blocks: never.
// Errors: addNode throws kBadConfig with the node's name for an unknown op, wrong inputs, missing
// or unknown attributes, shapes that don't fit, or a name that is taken. Inputs must exist already,
// so a graph has no cycles. References to nodes are valid until the next addNode.
class Graph {
 public:
  explicit Graph(const OpCatalog& catalog) : catalog_(&catalog) {}

  NodeId addNode(NodeDef def);

  const Node& node(NodeId id) const;
  // In creation order, which is topological.
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node* find(std::string_view name) const;  // nullptr if there is no such node
  const TensorSpec& spec(Output output) const;
  std::string uniqueName(std::string_view prefix) const;  // "relu", "relu_1", ...
  const OpCatalog& catalog() const { return *catalog_; }

 private:
  void noteSuffix(const std::string& name);

  const OpCatalog* catalog_;
  std::vector<Node> nodes_;
  std::map<std::string, NodeId, std::less<>> by_name_;
  std::map<std::string, int, std::less<>> suffixes_;  // by prefix: the last number in use
};

}  // namespace dtf::graph
