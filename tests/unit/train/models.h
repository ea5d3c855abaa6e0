#pragma once

// Model and job descriptions for the tests of this folder, as the YAML would give them.

#include <string>
#include <utility>

#include "common/cluster/spec.h"

namespace dtf::train {

inline cluster::LayerSpec flatten(int line = 0) {
  cluster::LayerSpec layer;
  layer.type = cluster::LayerSpec::Type::kFlatten;
  layer.name = "flatten";
  layer.mark = {"job.yaml", line, 7};
  return layer;
}

inline cluster::LayerSpec dense(std::string name, int64_t units,
                                cluster::Activation activation = cluster::Activation::kNone,
                                int line = 0) {
  cluster::LayerSpec layer;
  layer.type = cluster::LayerSpec::Type::kDense;
  layer.name = std::move(name);
  layer.dense.units = units;
  layer.dense.activation = activation;
  layer.mark = {"job.yaml", line, 7};
  return layer;
}

inline cluster::LayerSpec activation(std::string name, cluster::Activation kind) {
  cluster::LayerSpec layer;
  layer.type = cluster::LayerSpec::Type::kActivation;
  layer.name = std::move(name);
  layer.activation.activation = kind;
  return layer;
}

inline cluster::LayerSpec dropout(std::string name, double rate) {
  cluster::LayerSpec layer;
  layer.type = cluster::LayerSpec::Type::kDropout;
  layer.name = std::move(name);
  layer.dropout.rate = rate;
  return layer;
}

// The model of a first job: softmax regression on digits.
inline cluster::ModelSpec softmaxModel() {
  cluster::ModelSpec model;
  model.input_shape = {28, 28, 1};
  model.layers = {flatten(), dense("softmax", 10)};
  model.accuracy = true;
  model.mark = {"job.yaml", 3, 1};
  model.shape_mark = {"job.yaml", 4, 10};
  return model;
}

}  // namespace dtf::train
