#pragma once

// The graph that assign_test.cc runs, and the client that it kills.

#include <algorithm>
#include <string>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/tensor/tensor.h"

namespace dtf::testing {

inline Tensor filled(Shape shape, float value) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  std::fill(tensor.as<float>().begin(), tensor.as<float>().end(), value);
  return tensor;
}

// "add" adds the placeholder "x" to the variable "w".
inline graph::Graph makeAddingGraph(const std::string& container, int64_t elements) {
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const graph::Output w{b.node(
      "Variable", {},
      {{"shape", Shape{elements}}, {"initializer", std::string("zeros")}, {"container", container}},
      "w")};
  b.node("AssignAdd", {w, b.placeholder("x", DType::kFloat32, {elements})}, {}, "add");
  return graph;
}

}  // namespace dtf::testing
