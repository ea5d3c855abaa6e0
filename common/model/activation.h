#pragma once

// Activation functions: `activation: relu` in a dense layer, `- relu` as a layer of its own.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/graph/builder.h"

namespace dtf::model {

enum class Activation : uint8_t {
  kNone,
  kRelu,
  kSigmoid,
  kTanh,
  kRelu6,
  kLeakyRelu,
  kElu,
  kGelu,
  kSilu,
  kSoftplus,
  kSoftmax
};
// The choices of the key `activation`, in the order of the enum.
inline constexpr std::string_view kActivationNames =
    "none|relu|sigmoid|tanh|relu6|leaky_relu|elu|gelu|silu|softplus|softmax";

inline constexpr double kLeakyReluAlpha = 0.2;  // TensorFlow's default

std::string_view nameOf(Activation activation);

// Returns the activation of `x`; `x` itself for kNone. leaky_relu has the slope kLeakyReluAlpha
// below 0, gelu is exact (with erf), and softmax is over the last dimension.
graph::Output activate(graph::Builder& ops, Activation activation, graph::Output x);

}  // namespace dtf::model
