#pragma once

// The vocabulary of shape functions in the catalogue: requirements on inputs, and the texts of
// their errors. Internal to common/graph.

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "common/graph/op_def.h"

namespace dtf::graph {

// "float32[100, 784]"
std::string specText(const TensorSpec& spec);

// All of these throw kBadConfig with the input's `name`, its spec and the required one.
void wantFloat(const TensorSpec& spec, const char* name);
void wantLabels(const TensorSpec& spec, const char* name);  // uint8, int32 or int64
void wantRank(const TensorSpec& spec, int rank, const char* name);
void wantRankAtLeast(const TensorSpec& spec, int rank, const char* name);
void wantSame(const TensorSpec& a, const char* a_name, const TensorSpec& b, const char* b_name);
// Dimension `a_axis` of a equals dimension `b_axis` of b.
void wantSameDim(const TensorSpec& a, int a_axis, const char* a_name, const TensorSpec& b,
                 int b_axis, const char* b_name);

// An attribute that the graph has validated.
template <class T>
const T& get(const Attributes& attributes, const char* key) {
  return std::get<T>(attributes.find(key)->second);
}

// Returns the broadcast shape, as in NumPy and TensorFlow: aligned at the last dimension, two
// dimensions are equal, or one of them is 1 or missing and is repeated.
// Errors: kBadConfig with both shapes.
Shape broadcast(const Shape& a, const char* a_name, const Shape& b, const char* b_name);

// Returns the end of a message about an axis that a tensor of this rank doesn't have.
std::string axisRemedy(int64_t axis, int rank);

TensorSpec floats(Shape shape);
// Checks a gradient of rows: indices of any shape, and a row for each.
void wantGradientOfRows(const TensorSpec& gradient, const TensorSpec& indices);
// Returns the spec of a Gather from a table.
TensorSpec gathered(const TensorSpec& table, const TensorSpec& indices);

// n float32 inputs of one shape, one output of that shape.
std::vector<TensorSpec> elementwise(std::span<const TensorSpec> inputs,
                                    const Attributes& attributes);
// Two float32 inputs a and b, one output of broadcast() shape.
std::vector<TensorSpec> broadcastElementwise(std::span<const TensorSpec> inputs,
                                             const Attributes& attributes);
// One output, with the attributes `dtype` and `shape`.
std::vector<TensorSpec> declared(std::span<const TensorSpec> inputs, const Attributes& attributes);
// One float32 output with the attribute `shape`.
std::vector<TensorSpec> declaredFloat(std::span<const TensorSpec> inputs,
                                      const Attributes& attributes);
// One input of any type, one output of the same spec.
std::vector<TensorSpec> passThrough(std::span<const TensorSpec> inputs,
                                    const Attributes& attributes);
std::vector<TensorSpec> noOutput(std::span<const TensorSpec> inputs, const Attributes& attributes);

}  // namespace dtf::graph
