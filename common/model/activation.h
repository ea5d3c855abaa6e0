#pragma once

// The functions that a layer may apply to each element of what it gives: `activation: relu` of a
// dense layer, `- relu` as a layer of its own.

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
// The words of the file, in the order of the enum: the choices of the key.
inline constexpr std::string_view kActivationNames =
    "none|relu|sigmoid|tanh|relu6|leaky_relu|elu|gelu|silu|softplus|softmax";

inline constexpr double kLeakyReluAlpha = 0.2;  // TensorFlow's

std::string_view nameOf(Activation activation);

// `x` itself for kNone. leaky_relu has kLeakyReluAlpha below 0; gelu is the exact one, with erf;
// softmax is over the last dimension.
graph::Output activate(graph::Builder& ops, Activation activation, graph::Output x);

}  // namespace dtf::model
