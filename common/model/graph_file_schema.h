#pragma once

// What a file of a graph may say, and how an op's attributes are written there: read_graph.cc reads
// it.

#include "common/graph/op_def.h"
#include "common/yaml/keys.h"

namespace dtf::model {

extern const yaml::Table kGraphFileTable, kGraphRunTable, kGraphScopeTable, kGraphGradientTable,
    kGraphFunctionTable, kGraphParameterTable;

// The names of all ops that a file may have, "scope" and "gradients". Thread-safe.
const yaml::Table& graphOpTable();
// A shape is a list of whole numbers, a function the name of one of the file's.
yaml::Key graphKeyOf(const graph::AttributeDef& attribute);

// The key of an op that lists what it waits for: `after`, or, of an op with an attribute of that
// name (Pad), TensorFlow's word, `control_inputs`.
std::string_view waitsForKey(const graph::OpDef& op);

}  // namespace dtf::model
