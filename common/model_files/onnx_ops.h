#pragma once

// Converts one op of dtf's graph to nodes of ONNX.

#include "common/graph/graph.h"
#include "common/model_files/onnx_values.h"

namespace dtf::model_files {

// Whether convertOp() knows the operation.
bool canConvert(const graph::Node& node);

// Adds the nodes that compute the first output of `node`; its inputs are there already. `bias`: the
// only reader of `node`, which adds a vector of weights to it and is converted with it; nullptr:
// none.
// Errors: kBadConfig for settings of the op that ONNX, or this conversion, lacks.
void convertOp(OnnxValues& values, const graph::Node& node, const graph::Node* bias);

// Whether convertOp() can convert a bias with the op.
bool takesBias(const graph::Node& node);

}  // namespace dtf::model_files
