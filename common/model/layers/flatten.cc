// flatten: the elements of each example in one row.

#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"

namespace dtf::model {

namespace {

constinit const yaml::Table kFlattenTable{"train.model.layers.N.flatten", {}, &kAnyLayerTable};

class FlattenLayer final : public Layer {
 public:
  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    const Shape& shape = layers.shape(x);
    if (shape.rank() == 2) return x;
    const int64_t batch = layers.batchSize();
    return layers.ops().reshape(x, Shape{batch, shape.elements() / batch});
  }
  std::string meaning(std::string_view) const override { return "flatten"; }
};

std::shared_ptr<const Layer> readFlatten(const LayerType&, const yaml::MapReader&) {
  return std::make_shared<const FlattenLayer>();
}

}  // namespace

LayerType flattenLayer() {
  return {"flatten", "any shape to one dimension", &kFlattenTable, readFlatten};
}

}  // namespace dtf::model
