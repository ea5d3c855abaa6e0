// dense: activation(x * weights + biases), over examples of one dimension, or over each step of
// [steps, features] with the same weights.

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/model/layer_builder.h"
#include "common/model/layers/kernel_keys.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kDenseKeys[] = {
    yaml::required(yaml::whole("units", 1, 1'000'000, "outputs of the layer")),
};
constinit const yaml::Table kDenseTable{"train.model.layers.N.dense", kDenseKeys, &kKernelTable};

struct DenseSettings {
  int64_t units = 0;
  KernelSettings kernel;
};

class DenseLayer final : public Layer {
 public:
  explicit DenseLayer(const DenseSettings& settings) : settings_(settings) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    checkInput(layers, x);
    graph::Builder& ops = layers.ops();
    const Shape shape = layers.shape(x);
    const bool steps = shape.rank() == 3;
    DTF_CHECK(steps || shape.rank() == 2);
    const Shape weights{shape.dim(shape.rank() - 1), settings_.units};
    if (steps) x = ops.reshape(x, Shape{shape.dim(0) * shape.dim(1), shape.dim(2)});
    x = ops.matMul(x, settings_.kernel.weights(layers, weights));
    x = settings_.kernel.finish(layers, x);
    return steps ? ops.reshape(x, Shape{shape.dim(0), shape.dim(1), settings_.units}) : x;
  }

  std::string meaning(std::string_view name) const override {
    return fmt::format("dense {}: units={}{}", name, settings_.units, settings_.kernel.meaning());
  }
  std::string text(std::string_view name) const override {
    return meaning(name) + settings_.kernel.rest();
  }

 private:
  void checkInput(const LayerBuilder& layers, graph::Output x) const {
    const Shape& shape = layers.shape(x);
    if (shape.rank() != 2 && shape.rank() != 3)
      layers.fail(
          fmt::format("layer '{}' needs a flat input, or [steps, features], got {}: add "
                      "'flatten' before it",
                      layers.layerName(), layers.exampleShape(x).str()));
    const int64_t inputs = shape.dim(shape.rank() - 1);
    const int64_t units = settings_.units;
    const int64_t rows = inputs == 0 ? 0 : shape.elements() / inputs;
    int64_t elements = 0;
    if (units < 1 || __builtin_mul_overflow(inputs, units, &elements) ||
        __builtin_mul_overflow(rows, units, &elements))
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
  dense.kernel.read(settings);
  return std::make_shared<const DenseLayer>(dense);
}

}  // namespace

LayerType denseLayer() {
  return {"dense", "activation(input x kernel + bias)", &kDenseTable, readDense};
}

}  // namespace dtf::model
