#pragma once

// From one operation of dtf's graph to nodes of ONNX.

#include "common/graph/graph.h"
#include "common/model_files/onnx_values.h"

namespace dtf::model_files {

// Whether convertOp() knows the operation.
bool canConvert(const graph::Node& node);

// Adds what computes the first output of `node`; its inputs are there already. `bias`: the node
// that adds a vector of weights to it, and reads nothing else of it: then that node is converted,
// too.
// Nullptr: there is none.
// Errors: kBadConfig for settings of the operation that ONNX, or this, has no words for.
void convertOp(OnnxValues& values, const graph::Node& node, const graph::Node* bias);

// Whether convertOp() takes a bias with it.
bool takesBias(const graph::Node& node);

}  // namespace dtf::model_files
