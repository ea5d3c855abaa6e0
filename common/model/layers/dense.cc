// dense: activation(x * weights + biases), over examples of one dimension.

#include <fmt/format.h>

#include "common/graph/initializer.h"
#include "common/model/activation.h"
#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kDenseKeys[] = {
    yaml::required(yaml::whole("units", 1, 1'000'000, "outputs of the layer")),
    yaml::choice("activation", kActivationNames, "", "default none"),
    yaml::boolean("use_bias", "default true"),
    yaml::choice("kernel_initializer", graph::kInitializerNames, "", "default glorot_uniform"),
};
constinit const yaml::Table kDenseTable{"train.model.layers.N.dense", kDenseKeys, &kAnyLayerTable};

struct DenseSettings {
  int64_t units = 0;
  Activation activation = Activation::kNone;
  bool use_bias = true;
  std::string kernel_initializer = "glorot_uniform";
};

class DenseLayer final : public Layer {
 public:
  explicit DenseLayer(const DenseSettings& settings) : settings_(settings) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    checkInput(layers, x);
    const Shape weights{layers.shape(x).dim(1), settings_.units};
    x = layers.ops().matMul(x, layers.variable("weights", weights, settings_.kernel_initializer));
    if (settings_.use_bias) {
      const graph::Output biases = layers.variable("biases", Shape{settings_.units}, "zeros");
      x = layers.ops().biasAdd(x, biases);
    }
    return activate(layers.ops(), settings_.activation, x);
  }

  std::string meaning(std::string_view name) const override {
    return fmt::format("dense {}: units={} activation={} use_bias={}", name, settings_.units,
                       nameOf(settings_.activation), settings_.use_bias);
  }
  std::string text(std::string_view name) const override {
    return meaning(name) + " kernel_initializer=" + settings_.kernel_initializer;
  }

 private:
  void checkInput(const LayerBuilder& layers, graph::Output x) const {
    if (layers.shape(x).rank() != 2)
      layers.fail(fmt::format("layer '{}' needs a flat input, got {}: add 'flatten' before it",
                              layers.layerName(), layers.exampleShape(x).str()));
    const int64_t inputs = layers.shape(x).dim(1);
    const int64_t units = settings_.units;
    int64_t elements = 0;
    if (units < 1 || __builtin_mul_overflow(inputs, units, &elements) ||
        __builtin_mul_overflow(layers.batchSize(), units, &elements))
      layers.fail(
          fmt::format("layer '{}' has {} inputs and {} units: more weights than can be counted, "
                      "or none",
                      layers.layerName(), inputs, units));
  }

  const DenseSettings settings_;
};

std::shared_ptr<const Layer> readDense(const LayerType&, const yaml::MapReader& settings) {
  DenseSettings dense;
  settings.whole("units", dense.units);
  settings.choice("activation", dense.activation);
  settings.boolean("use_bias", dense.use_bias);
  settings.word("kernel_initializer", dense.kernel_initializer);
  return std::make_shared<const DenseLayer>(dense);
}

}  // namespace

LayerType denseLayer() {
  return {"dense", "activation(input x kernel + bias)", &kDenseTable, readDense};
}

}  // namespace dtf::model
