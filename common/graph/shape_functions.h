#pragma once

// The vocabulary in which the catalogue writes shape functions: what an op demands of its inputs,
// and the text of the refusal. Internal to common/graph.

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "common/graph/op_def.h"

namespace dtf::graph {

// "float32[100, 784]"
std::string specText(const TensorSpec& spec);

// All of these throw kBadConfig naming the input by `name`, what it is and what it had to be.
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

// What two shapes make together, as NumPy and TensorFlow have it: side by side from the last
// dimension on, dimensions are the same, or one of them is 1 or not there, and counts as the
// other's.
// Errors: kBadConfig with both shapes.
Shape broadcast(const Shape& a, const char* a_name, const Shape& b, const char* b_name);

TensorSpec floats(Shape shape);
// What Gather makes of a table.
TensorSpec gathered(const TensorSpec& table, const TensorSpec& indices);

// n float32 inputs of one shape, one output of that shape.
std::vector<TensorSpec> elementwise(std::span<const TensorSpec> inputs,
                                    const Attributes& attributes);
// Two float32 inputs a and b, one output of broadcast() shape.
std::vector<TensorSpec> broadcastElementwise(std::span<const TensorSpec> inputs,
                                             const Attributes& attributes);
// The output is what the attributes `dtype` and `shape` say.
std::vector<TensorSpec> declared(std::span<const TensorSpec> inputs, const Attributes& attributes);
// The output is float32 of the attribute `shape`.
std::vector<TensorSpec> declaredFloat(std::span<const TensorSpec> inputs,
                                      const Attributes& attributes);
// One input of any type, one output just like it.
std::vector<TensorSpec> passThrough(std::span<const TensorSpec> inputs,
                                    const Attributes& attributes);
std::vector<TensorSpec> noOutput(std::span<const TensorSpec> inputs, const Attributes& attributes);

}  // namespace dtf::graph
