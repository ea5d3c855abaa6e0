// Layers that apply one function to each element: relu, sigmoid and so on; leaky_relu has a slope.

#include <fmt/format.h>

#include "common/model/activation.h"

#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constinit const yaml::Table kActivationTable{
    "train.model.layers.N.relu, and the other activations", {}, &kAnyLayerTable};

constexpr yaml::Key kLeakyReluKeys[] = {
    yaml::number("negative_slope", {0, 1, false, false},
                 "below 0; default 0.2, as in keras.activations.leaky_relu"),
};
constinit const yaml::Table kLeakyReluTable{"train.model.layers.N.leaky_relu", kLeakyReluKeys,
                                            &kAnyLayerTable};

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

// max(x, negative_slope * x): Maas, Hannun and Ng, ICML 2013.
class LeakyReluLayer final : public Layer {
 public:
  explicit LeakyReluLayer(double alpha) : alpha_(alpha) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    return layers.ops().leakyRelu(x, alpha_);
  }
  std::string meaning(std::string_view) const override {
    return fmt::format("leaky_relu negative_slope={}", alpha_);
  }

 private:
  const double alpha_;
};

std::shared_ptr<const Layer> readLeakyRelu(const LayerType&, const yaml::MapReader& settings) {
  double alpha = kLeakyReluAlpha;
  settings.number("negative_slope", alpha);
  return std::make_shared<const LeakyReluLayer>(alpha);
}

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
  return {row<Activation::kRelu>("max(x, 0)"),
          row<Activation::kSigmoid>("1 / (1 + exp(-x))"),
          row<Activation::kTanh>("hyperbolic tangent"),
          row<Activation::kRelu6>("x within 0 and 6"),
          {"leaky_relu", "x, or negative_slope * x below 0", &kLeakyReluTable, readLeakyRelu},
          row<Activation::kElu>("x, or exp(x) - 1 below 0"),
          row<Activation::kGelu>("x times the normal distribution up to x"),
          row<Activation::kSilu>("x / (1 + exp(-x))"),
          row<Activation::kSoftplus>("log(1 + exp(x))"),
          row<Activation::kSoftmax>("exp(x), over the last dimension divided by their sum")};
}

}  // namespace dtf::model
