// reshape: the same elements in another shape, row-major.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kReshapeKeys[] = {
    {.name = "target_shape",
     .type = yaml::ValueType::kList,
     .help = "shape of one example, without the batch: [7, 7, 64]",
     .required = true,
     .whole_min = 1,
     .whole_max = int64_t{1} << 30},
};
constinit const yaml::Table kReshapeTable{"train.model.layers.N.reshape", kReshapeKeys,
                                          &kAnyLayerTable};

class ReshapeLayer final : public Layer {
 public:
  explicit ReshapeLayer(std::vector<int64_t> shape) : shape_(std::move(shape)) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    std::vector<int64_t> dims = {layers.batchSize()};
    dims.insert(dims.end(), shape_.begin(), shape_.end());
    const Shape wanted(std::move(dims));
    if (wanted.elements() != layers.shape(x).elements())
      layers.fail(
          fmt::format("layer '{}' can't make [{}] of {}: they differ in their number of "
                      "elements",
                      layers.layerName(), fmt::join(shape_, ", "), layers.exampleShape(x).str()));
    return layers.ops().reshape(x, wanted);
  }
  std::string meaning(std::string_view) const override {
    return fmt::format("reshape target_shape=[{}]", fmt::join(shape_, ", "));
  }

 private:
  const std::vector<int64_t> shape_;
};

std::shared_ptr<const Layer> readReshape(const LayerType&, const yaml::MapReader& settings) {
  constexpr size_t kDimensionsMax = 8;
  std::vector<int64_t> shape;
  const std::vector<yaml::YamlNode>& sizes = settings.list("target_shape");
  const yaml::YamlNode* list = settings.find("target_shape");
  if (list != nullptr && list->isSequence() && (sizes.empty() || sizes.size() > kDimensionsMax))
    settings.report().error(list->where(),
                            fmt::format("'target_shape' must have from 1 to {} sizes, got {}",
                                        kDimensionsMax, sizes.size()));
  for (const yaml::YamlNode& node : sizes)
    if (const auto size = yaml::readWhole(node, kReshapeKeys[0], settings.report()))
      shape.push_back(*size);
  return std::make_shared<const ReshapeLayer>(std::move(shape));
}

}  // namespace

LayerType reshapeLayer() {
  return {"reshape", "the same elements in another shape", &kReshapeTable, readReshape};
}

}  // namespace dtf::model
