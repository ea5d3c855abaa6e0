#pragma once

// What layers that multiply their input with a kernel have in common: how it begins, what keeps it
// small, the biases, the activation.

#include <string>
#include <string_view>

#include "common/model/activation.h"
#include "common/model/layer.h"
#include "common/yaml/keys.h"

namespace dtf::model {

class LayerBuilder;

// The keys, with those of any layer: the `also` of such a layer's table.
extern const yaml::Table kKernelTable;
extern const yaml::Table kRegularizerTable;

// As one layer's file gives them. Value type.
struct KernelSettings {
  // The keys are <word>_initializer and <word>_regularizer: Keras calls a kernel of each channel
  // "depthwise".
  std::string_view word = "kernel";
  Activation activation = Activation::kNone;
  bool use_bias = true;
  std::string initializer = "glorot_uniform";
  std::string bias_initializer = "zeros";
  double l1 = 0, l2 = 0;  // added to the loss: l1 * sum(|w|) + l2 * sum(w^2), Keras' formula

  void read(const yaml::MapReader& settings);

  // The variable "weights", its penalty on the loss included.
  graph::Output weights(LayerBuilder& layers, const Shape& shape) const;
  // activation(x + biases), where there are biases; they are of the last dimension of x.
  graph::Output finish(LayerBuilder& layers, graph::Output x) const;

  std::string meaning() const;  // " activation=relu use_bias=true"
  std::string rest() const;     // what a checkpoint doesn't ask for: " kernel_initializer=zeros"
};

}  // namespace dtf::model
