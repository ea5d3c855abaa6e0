#pragma once

// The keys of a graph file, and how it spells the attributes of ops; read_graph.h reads it.

#include <cstdint>

#include "common/graph/op_def.h"
#include "common/yaml/keys.h"

namespace dtf::model {

extern const yaml::Table kGraphFileTable, kGraphRunTable, kGraphScopeTable, kGraphGradientTable,
    kGraphMinimizeTable, kGraphFunctionTable, kGraphParameterTable, kGraphCheckpointTable,
    kGraphSummariesTable, kGraphFeedTable;

inline constexpr int64_t kTowersMax = 1024;  // of a graph file

// Returns all ops that a file may use, and "scope", "gradients" and "minimize", as keys.
// Thread-safe.
const yaml::Table& graphOpTable();
// Returns the key of an attribute. A shape is a list of whole numbers, a function its name.
yaml::Key graphKeyOf(const graph::AttributeDef& attribute);

// Returns the key that lists the control inputs of an op: `after`, or, for an op with an attribute
// of that name (Pad), TensorFlow's word, `control_inputs`.
std::string_view waitsForKey(const graph::OpDef& op);

}  // namespace dtf::model
