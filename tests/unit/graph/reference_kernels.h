#pragma once

// Parts that the files with the reference's ops share.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::graph::testing {

// One node to compute; its inputs are known.
struct Call {
  const Graph& graph;
  const Node& node;
  std::vector<const Values*> inputs;

  const Values& in(size_t i) const { return *inputs[i]; }
  const Shape& inShape(size_t i) const { return graph.spec(node.inputs[i]).shape; }
  size_t dim(size_t i, int axis) const { return static_cast<size_t>(inShape(i).dim(axis)); }
  size_t outElements() const { return static_cast<size_t>(node.outputs[0].shape.elements()); }
};

using Results = std::vector<Values>;
using ReferenceKernel = std::function<Results(const Call&)>;
using ReferenceKernels = std::map<std::string, ReferenceKernel, std::less<>>;

// Applies f to each pair of elements of the two inputs, which it repeats as NumPy does.
ReferenceKernel broadcasting(double (*f)(double, double));

void addMathReferences(ReferenceKernels& kernels);     // reference_math_kernels.cc
void addControlReferences(ReferenceKernels& kernels);  // reference_control_kernels.cc
void addImageReferences(ReferenceKernels& kernels);    // reference_image_kernels.cc
void addLayerReferences(ReferenceKernels& kernels);    // reference_layer_kernels.cc

}  // namespace dtf::graph::testing
