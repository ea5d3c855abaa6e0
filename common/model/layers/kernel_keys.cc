#include "common/model/layers/kernel_keys.h"

#include <fmt/format.h>

#include "common/model/layer_builder.h"
#include "common/model/layers/initializer_keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kKernelKeys[] = {
    yaml::choice("activation", kActivationNames, "", "default none"),
    yaml::boolean("use_bias", "default true"),
    initializerKey("kernel_initializer", "default glorot_uniform"),
    initializerKey("bias_initializer", "default zeros"),
    yaml::map("kernel_regularizer", "added to the loss; default nothing"),
};

constexpr yaml::Key kRegularizerKeys[] = {
    yaml::number("l1", yaml::kNotNegative, "times the sum of |weight|; default 0"),
    yaml::number("l2", yaml::kNotNegative, "times the sum of weight^2; default 0"),
};

// `factor` times the sum of the elements.
graph::Output scaledSum(graph::Builder& ops, graph::Output x, double factor) {
  const auto elements = static_cast<double>(ops.graph().spec(x).shape.elements());
  return ops.scale(ops.mean(x), factor * elements);
}

}  // namespace

constinit const yaml::Table kKernelTable{"train.model.layers.N.dense, .conv2d, beside their own",
                                         kKernelKeys, &kAnyLayerTable};
constinit const yaml::Table kRegularizerTable{"train.model.layers.N.dense.kernel_regularizer",
                                              kRegularizerKeys};

void KernelSettings::read(const yaml::MapReader& settings) {
  const std::string initializer_key = fmt::format("{}_initializer", word);
  const std::string regularizer_key = fmt::format("{}_regularizer", word);
  settings.choice("activation", activation);
  settings.boolean("use_bias", use_bias);
  readInitializer(settings, initializer_key, initializer);
  readInitializer(settings, "bias_initializer", bias_initializer);
  const yaml::YamlNode* const node = settings.find(regularizer_key);
  if (node == nullptr) return;
  const yaml::MapReader regularizer(*node, kRegularizerTable, regularizer_key, settings.report());
  regularizer.number("l1", l1);
  regularizer.number("l2", l2);
}

graph::Output KernelSettings::weights(LayerBuilder& layers, const Shape& shape) const {
  graph::Builder& ops = layers.ops();
  const graph::Output weights =
      layers.variable("weights", shape, initializer, fmt::format("{}_initializer", word));
  const graph::Builder::Scope scope = ops.nameScope("kernel_regularizer");
  if (l1 > 0) layers.addPenalty(scaledSum(ops, ops.abs(weights), l1));
  if (l2 > 0) layers.addPenalty(scaledSum(ops, ops.mul(weights, weights), l2));
  return weights;
}

graph::Output KernelSettings::finish(LayerBuilder& layers, graph::Output x) const {
  const Shape& shape = layers.shape(x);
  const Shape channels{shape.dim(shape.rank() - 1)};
  if (use_bias)
    x = layers.ops().biasAdd(
        x, layers.variable("biases", channels, bias_initializer, "bias_initializer"));
  return activate(layers.ops(), activation, x);
}

std::string KernelSettings::meaning() const {
  return fmt::format(" activation={} use_bias={}", nameOf(activation), use_bias);
}

std::string KernelSettings::rest() const {
  std::string text = fmt::format(" {}_initializer={}", word, initializer);
  if (bias_initializer != "zeros") text += " bias_initializer=" + bias_initializer;
  if (l1 > 0) text += fmt::format(" l1={}", l1);
  if (l2 > 0) text += fmt::format(" l2={}", l2);
  return text;
}

}  // namespace dtf::model
