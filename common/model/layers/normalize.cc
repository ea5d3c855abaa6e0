// normalization: (x - mean) / sqrt(variance) for each place of the last dimension, with given mean
// and variance; batch_normalization computes them from the batch.

#include <fmt/format.h>

#include <cmath>
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
constexpr double kNoEpsilon = 1e-12;  // beside a variance of 1 negligible in float32

constexpr yaml::Key kNormalizeKeys[] = {
    yaml::required(yaml::list("mean", "one for each place of the last dimension, or one for all")),
    yaml::list("variance", "likewise; above 0"),
    yaml::list("std", "in place of variance: its square root"),
};
constexpr yaml::Key kMeanNumber = yaml::number("mean", {-1e9, 1e9, false, false}, "");
constexpr yaml::Key kVarianceNumber = yaml::number("variance", {1e-18, 1e18, false, false}, "");
constexpr yaml::Key kStdNumber = yaml::number("std", {1e-9, 1e9, false, false}, "");
constinit const yaml::Table kNormalizeTable{"train.model.layers.N.normalization", kNormalizeKeys,
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
    return fmt::format("normalization {}: mean={} std={}", name, numbersText(mean_),
                       numbersText(std_));
  }

 private:
  const std::vector<double> mean_;
  const std::vector<double> std_;
};

// Reads the standard deviations from `variance` or `std`, exactly one of which must be present.
std::vector<double> readDeviations(const yaml::MapReader& settings) {
  const yaml::YamlNode& node = settings.node();
  const bool has_variance = node.find("variance") != nullptr, has_std = node.find("std") != nullptr;
  if (has_variance == has_std)
    settings.report().error(node.key_place,
                            has_std ? "'variance' and 'std' exclude each other in 'normalization'"
                                    : "missing key 'variance' in 'normalization': one for each "
                                      "place of the last dimension, or one for all");
  if (has_std) return readNumbers(settings, kStdNumber, kNumbersMax);
  std::vector<double> numbers;
  if (has_variance) numbers = readNumbers(settings, kVarianceNumber, kNumbersMax);
  for (double& number : numbers) number = std::sqrt(number);
  return numbers;
}

std::shared_ptr<const Layer> readNormalize(const LayerType&, const yaml::MapReader& settings) {
  std::vector<double> mean = readNumbers(settings, kMeanNumber, kNumbersMax);
  return std::make_shared<const NormalizeLayer>(std::move(mean), readDeviations(settings));
}

}  // namespace

LayerType normalizeLayer() {
  return {"normalization", "(x - mean) / sqrt(variance), of numbers that are given",
          &kNormalizeTable, readNormalize};
}

}  // namespace dtf::model
