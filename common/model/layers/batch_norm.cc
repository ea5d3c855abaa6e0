// batch_normalization: brings each channel to mean 0 and variance 1, then scales and shifts it by
// the variables gamma and beta (Ioffe and Szegedy, ICML 2015). Training takes mean and variance
// from the batch, evaluation from moving averages, which the ps keep as untrained variables.

#include <fmt/format.h>

#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kBatchNormKeys[] = {
    yaml::number("momentum", yaml::kDecay, "decay of the moving averages; default 0.99"),
    yaml::number("epsilon", {1e-12, 1e6, false, false}, "added to the variance; default 0.001"),
    yaml::boolean("scale", "by the variable gamma; default true"),
    yaml::boolean("center", "by the variable beta; default true"),
};
constinit const yaml::Table kBatchNormTable{"train.model.layers.N.batch_normalization",
                                            kBatchNormKeys, &kAnyLayerTable};

// Keras' defaults.
struct BatchNormSettings {
  double momentum = 0.99;
  double epsilon = 0.001;
  bool scale = true;
  bool center = true;
};

class BatchNormLayer final : public Layer {
 public:
  explicit BatchNormLayer(const BatchNormSettings& settings) : settings_(settings) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    graph::Builder& ops = layers.ops();
    const Shape& shape = layers.shape(x);
    const Shape channels{shape.dim(shape.rank() - 1)};
    const graph::Output gamma =
        settings_.scale ? layers.variable("gamma", channels, "ones") : ops.constant(channels, 1);
    const graph::Output beta =
        settings_.center ? layers.variable("beta", channels, "zeros") : ops.constant(channels, 0);
    const double momentum = settings_.momentum;
    const graph::Output mean = layers.movingAverage("moving_mean", channels, "zeros", momentum);
    const graph::Output variance =
        layers.movingAverage("moving_variance", channels, "ones", momentum);
    if (!layers.training())
      return ops.batchNormInference(x, gamma, beta, mean, variance, settings_.epsilon);
    if (shape.elements() == channels.elements() && !layers.isShort())
      layers.fail(
          fmt::format("layer '{}' has one number of each channel in a batch, its own mean: nothing "
                      "would be learnt. Choose a batch_size "
                      "above 1",
                      layers.layerName()));
    const graph::Builder::BatchNorm normalised = ops.batchNorm(x, gamma, beta, settings_.epsilon);
    layers.setStatistic(mean, normalised.mean);
    layers.setStatistic(variance, normalised.variance);
    return normalised.y;
  }
  std::string meaning(std::string_view name) const override {
    return fmt::format("batch_normalization {}: momentum={} epsilon={} scale={} center={}", name,
                       settings_.momentum, settings_.epsilon, settings_.scale, settings_.center);
  }

 private:
  const BatchNormSettings settings_;
};

std::shared_ptr<const Layer> readBatchNorm(const LayerType&, const yaml::MapReader& settings) {
  BatchNormSettings norm;
  settings.number("momentum", norm.momentum);
  settings.number("epsilon", norm.epsilon);
  settings.boolean("scale", norm.scale);
  settings.boolean("center", norm.center);
  return std::make_shared<const BatchNormLayer>(norm);
}

}  // namespace

LayerType batchNormLayer() {
  return {"batch_normalization", "each channel over the batch to mean 0 and variance 1",
          &kBatchNormTable, readBatchNorm};
}

}  // namespace dtf::model
