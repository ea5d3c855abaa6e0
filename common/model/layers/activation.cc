// Layers that apply one function to each element: relu, sigmoid, tanh.

#include "common/model/activation.h"

#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"

namespace dtf::model {

namespace {

constinit const yaml::Table kActivationTable{
    "train.model.layers.N.relu, .sigmoid, .tanh", {}, &kAnyLayerTable};

class ActivationLayer final : public Layer {
 public:
  explicit ActivationLayer(Activation activation) : activation_(activation) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    return activate(layers.ops(), activation_, x);
  }
  std::string meaning(std::string_view) const override { return std::string(nameOf(activation_)); }

 private:
  const Activation activation_;
};

template <Activation kActivation>
std::shared_ptr<const Layer> readActivation(const LayerType&, const yaml::MapReader&) {
  return std::make_shared<const ActivationLayer>(kActivation);
}

template <Activation kActivation>
LayerType row(std::string_view help) {
  return {nameOf(kActivation), help, &kActivationTable, readActivation<kActivation>};
}

}  // namespace

std::vector<LayerType> activationLayers() {
  return {row<Activation::kRelu>("max(x, 0)"), row<Activation::kSigmoid>("1 / (1 + exp(-x))"),
          row<Activation::kTanh>("hyperbolic tangent")};
}

}  // namespace dtf::model
