#pragma once

// How the nodes of an ONNX model use its weights: whether they are turned, and in which order the
// rows of a matrix read a flattened image. ONNX's images are [batch, channels, height, width],
// unless a Transpose has turned them.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/model_files/weight_layout.h"

namespace dtf::model_files {

// The parts of a node that decide how it uses weights. Value type.
struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs, outputs;
  bool trans_a = false, trans_b = false;  // Gemm
  float alpha = 1, beta = 1;              // Gemm
  int64_t axis = 1;                       // Flatten, Concat
  std::vector<int64_t> perm;              // Transpose
};

// How one weight is used.
struct OnnxUse {
  enum class Turn : uint8_t { kNone, kFilter, kTransposed } turn = Turn::kNone;
  WeightLayout layout = WeightLayout::kUnknown;
  std::string name;     // more telling than the weight's own; else empty
  std::string refused;  // why it can't be used; else empty
  bool operator==(const OnnxUse&) const = default;
};

// Returns the use of each of `weights`, the graph's initializers, that a node uses in a known way.
// `nodes` are in the order of the file, each after the nodes that it reads; `inputs` are the
// graph's inputs of four dimensions. A weight with two different uses is refused.
std::map<std::string, OnnxUse> onnxUses(std::span<const OnnxNode> nodes,
                                        const std::set<std::string>& weights,
                                        const std::set<std::string>& inputs);

}  // namespace dtf::model_files
