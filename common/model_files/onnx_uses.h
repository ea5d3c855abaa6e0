#pragma once

// How the nodes of an ONNX model use its weights: what is turned, and in which order the rows of a
// matrix read an image that was flattened before it. ONNX's images are [batch, channels, height,
// width]; a Transpose may have made others of them.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/model_files/weight_layout.h"

namespace dtf::model_files {

// Of a node what its use of weights depends on. Value type.
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
  std::string name;     // which says more than the weight's own; else empty
  std::string refused;  // why it can't be used; else empty
  bool operator==(const OnnxUse&) const = default;
};

// Of each of `weights`, the graph's initializers, that a node uses in a way that is known. `nodes`
// are in the order of the file, in which each comes after those that it reads; `inputs` are those
// of the graph that have four dimensions. A weight that is used in two ways is refused.
std::map<std::string, OnnxUse> onnxUses(std::span<const OnnxNode> nodes,
                                        const std::set<std::string>& weights,
                                        const std::set<std::string>& inputs);

}  // namespace dtf::model_files
