// normalize: numbers that are known beforehand to mean 0 and variance 1: (x - mean) / std, for each
// place of the last dimension. For input whose statistics are known; batch_norm finds them out.

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"
#include "common/model/numbers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr size_t kNumbersMax = 4096;
constexpr double kNoEpsilon = 1e-12;  // beside a variance of 1: nothing, in float32

constexpr yaml::Key kNormalizeKeys[] = {
    yaml::required(yaml::list("mean", "one for each place of the last dimension, or one for all")),
    yaml::required(yaml::list("std", "likewise; above 0")),
};
constexpr yaml::Key kMeanNumber = yaml::number("mean", {-1e9, 1e9, false, false}, "");
constexpr yaml::Key kStdNumber = yaml::number("std", {1e-9, 1e9, false, false}, "");
constinit const yaml::Table kNormalizeTable{"train.model.layers.N.normalize", kNormalizeKeys,
                                            &kAnyLayerTable};

class NormalizeLayer final : public Layer {
 public:
  NormalizeLayer(std::vector<double> mean, std::vector<double> std)
      : mean_(std::move(mean)), std_(std::move(std)) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    const Shape example = layers.exampleShape(x);
    const int64_t channels = example.rank() > 0 ? example.dim(example.rank() - 1) : 0;
    for (const std::vector<double>* numbers : {&mean_, &std_})
      if (numbers->size() != 1 && static_cast<int64_t>(numbers->size()) != channels)
        layers.fail(
            fmt::format("layer '{}' has {} numbers for the last dimension of {}: give one "
                        "for each place, or one for all",
                        layers.layerName(), numbers->size(), example.str()));
    std::vector<double> scale;
    for (const double each : std_) scale.push_back(1 / each);
    graph::Builder& ops = layers.ops();
    const graph::Output zero = ops.constant(Shape{channels}, 0);
    const graph::Output one = ops.constant(Shape{channels}, 1);
    return ops.batchNormInference(x, vectorOf(ops, scale, channels), zero,
                                  vectorOf(ops, mean_, channels), one, kNoEpsilon);
  }
  std::string meaning(std::string_view name) const override {
    return fmt::format("normalize {}: mean={} std={}", name, numbersText(mean_), numbersText(std_));
  }

 private:
  const std::vector<double> mean_;
  const std::vector<double> std_;
};

std::shared_ptr<const Layer> readNormalize(const LayerType&, const yaml::MapReader& settings) {
  std::vector<double> mean = readNumbers(settings, kMeanNumber, kNumbersMax);
  return std::make_shared<const NormalizeLayer>(std::move(mean),
                                                readNumbers(settings, kStdNumber, kNumbersMax));
}

}  // namespace

LayerType normalizeLayer() {
  return {"normalize", "(x - mean) / std, of numbers that are given", &kNormalizeTable,
          readNormalize};
}

}  // namespace dtf::model
