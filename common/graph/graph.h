#pragma once

// The dataflow graph: nodes (ops) with typed, shaped outputs, data edges and control edges.
// Building a graph infers every shape at once, so a graph that exists is a graph whose shapes fit.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace dtf::graph {

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
  std::string device;  // as requested ("/job:ps/task:0", partial or empty); placed: the full one
  std::vector<TensorSpec> outputs;  // inferred

  // Errors: DTF_CHECK when it is missing or of another type: the catalogue has validated it.
  template <class T>
  const T& attribute(std::string_view key) const {
    const auto found = attributes.find(key);
    DTF_CHECK_MSG(found != attributes.end() && std::holds_alternative<T>(found->second),
                  name + " (" + op + "): attribute " + std::string(key));
    return std::get<T>(found->second);
  }
};

// Whether the node's second input is the gradient of the variable that is its first: ApplyGradient,
// ApplySparseGradient.
bool appliesGradient(const Node& node);

// Whether the node's first input is a variable that it reads or assigns when it runs: ReadVariable,
// Assign, AssignAdd, AssignSub, ScatterAdd, ScatterUpdate.
bool actsOnVariable(const Node& node);

// What a caller gives to add a node. An optional attribute left out gets its type's zero.
struct NodeDef {
  std::string name;
  std::string op;
  std::vector<Output> inputs;
  Attributes attributes;
  std::vector<NodeId> control_inputs = {};
  std::string device = {};
};

// Owns its nodes; a node is never removed (prune() makes a new graph).
// Borrows: `catalog`, which must outlive it.
// Threads: thread-compatible.
// Blocks: never.
// Errors: addNode throws kBadConfig, naming the node, for an unknown op, wrong inputs, missing or
// unknown attributes, shapes that don't fit, or a name that is taken. Inputs must exist already, so
// a graph has no cycles. References to nodes are good until the next addNode.
class Graph {
 public:
  explicit Graph(const OpCatalog& catalog) : catalog_(&catalog) {}

  NodeId addNode(NodeDef def);

  const Node& node(NodeId id) const;
  // In creation order, which is topological.
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node* find(std::string_view name) const;  // nullptr: no such node
  const TensorSpec& spec(Output output) const;
  std::string uniqueName(std::string_view prefix) const;  // "relu", "relu_1", ...
  const OpCatalog& catalog() const { return *catalog_; }

 private:
  void noteSuffix(const std::string& name);

  const OpCatalog* catalog_;
  std::vector<Node> nodes_;
  std::map<std::string, NodeId, std::less<>> by_name_;
  std::map<std::string, int, std::less<>> suffixes_;  // by prefix: the numbers up to it are taken
};

}  // namespace dtf::graph
