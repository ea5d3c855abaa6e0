// layer_normalization: each example's last dimension to mean 0 and variance 1, then scaled and
// shifted by variables gamma and beta (Ba, Kiros and Hinton, 2016).

#include <fmt/format.h>

#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr double kEpsilon = 0.001;  // Keras'

constexpr yaml::Key kLayerNormKeys[] = {
    yaml::number("epsilon", {1e-12, 1e6, false, false}, "added to the variance; default 0.001"),
};
constinit const yaml::Table kLayerNormTable{"train.model.layers.N.layer_normalization",
                                            kLayerNormKeys, &kAnyLayerTable};

class LayerNormLayer final : public Layer {
 public:
  explicit LayerNormLayer(double epsilon) : epsilon_(epsilon) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    const Shape& shape = layers.shape(x);
    const Shape channels{shape.dim(shape.rank() - 1)};
    const graph::Output gamma = layers.variable("gamma", channels, "ones");
    const graph::Output beta = layers.variable("beta", channels, "zeros");
    return layers.ops().layerNorm(x, gamma, beta, epsilon_).y;
  }
  std::string meaning(std::string_view name) const override {
    return fmt::format("layer_normalization {}: epsilon={}", name, epsilon_);
  }

 private:
  const double epsilon_;
};

std::shared_ptr<const Layer> readLayerNorm(const LayerType&, const yaml::MapReader& settings) {
  double epsilon = kEpsilon;
  settings.number("epsilon", epsilon);
  return std::make_shared<const LayerNormLayer>(epsilon);
}

}  // namespace

LayerType layerNormLayer() {
  return {"layer_normalization",
          "each example's channels to mean 0 and variance 1, scaled and shifted", &kLayerNormTable,
          readLayerNorm};
}

}  // namespace dtf::model
