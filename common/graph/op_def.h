#pragma once

// Definitions of ops: inputs, attributes and the rule for output shapes. The catalogue is an object
// made by standardOps(), not a set of static registrations: nothing depends on link order.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph {

struct AttributeDef {
  std::string name;
  enum class Type : uint8_t {
    kBool,
    kInt,
    kDouble,
    kString,
    kDType,
    kShape,
    kFunction
  } type = Type::kInt;
  bool required = true;  // optional ones default to their type's zero
};

// Computes output specs from input specs and attributes.
// Errors: throws kBadConfig with the misfit (the graph adds the node's name).
using ShapeFunction = std::function<std::vector<TensorSpec>(std::span<const TensorSpec> inputs,
                                                            const Attributes& attributes)>;

struct OpDef {
  std::string name;  // "MatMul"
  int inputs = 0;    // the number of inputs; -1: any
  std::vector<AttributeDef> attributes;
  ShapeFunction infer;
  // Reads or writes a variable, or communicates with another task: never merged, never folded.
  bool stateful = false;
};

// Immutable once filled; then thread-safe.
class OpCatalog {
 public:
  void add(OpDef def);                             // DTF_CHECKs that the name is new
  const OpDef* find(std::string_view name) const;  // nullptr if there is no such op
  std::vector<std::string_view> names() const;     // for "did you mean"

 private:
  std::map<std::string, OpDef, std::less<>> defs_;
};

// Every op of dtf. Inputs, outputs and attributes are listed at the top of
// standard_{math,nn,image,norm,array,state,training,queue}_ops.cc. Built once, for the life of the
// process.
const OpCatalog& standardOps();

}  // namespace dtf::graph
