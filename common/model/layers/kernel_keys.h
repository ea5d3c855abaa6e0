#pragma once

// Keys of layers that multiply their input with a kernel: initializers, regularizer, biases,
// activation.

#include <string>
#include <string_view>

#include "common/model/activation.h"
#include "common/model/layer.h"
#include "common/yaml/keys.h"

namespace dtf::model {

class LayerBuilder;

// These keys and the keys of any layer: the `also` of such a layer's table.
extern const yaml::Table kKernelTable;
extern const yaml::Table kRegularizerTable;

// The settings of one layer. Value type.
struct KernelSettings {
  // The prefix of the keys <word>_initializer and <word>_regularizer; "depthwise" where Keras has
  // that.
  std::string_view word = "kernel";
  Activation activation = Activation::kNone;
  bool use_bias = true;
  std::string initializer = "glorot_uniform";
  std::string bias_initializer = "zeros";
  double l1 = 0, l2 = 0;  // added to the loss: l1 * sum(|w|) + l2 * sum(w^2), Keras' formula

  void read(const yaml::MapReader& settings);

  // Adds the variable "weights" and its penalty on the loss.
  graph::Output weights(LayerBuilder& layers, const Shape& shape) const;
  // Returns activation(x + biases), with one bias for each place of the last dimension; without
  // use_bias activation(x).
  graph::Output finish(LayerBuilder& layers, graph::Output x) const;

  std::string meaning() const;  // " activation=relu use_bias=true"
  std::string rest() const;     // not in checkpoints: " kernel_initializer=zeros"
};

}  // namespace dtf::model
