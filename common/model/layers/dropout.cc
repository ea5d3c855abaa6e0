// dropout: while training, sets elements to zero and scales the others by 1 / (1 - rate), so that
// evaluation leaves it out (Srivastava et al., JMLR 15, 2014).

#include <fmt/format.h>

#include "common/model/layer_builder.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kDropoutKeys[] = {
    yaml::required(yaml::number("rate", yaml::kDecay, "the probability that an element becomes 0")),
};
constinit const yaml::Table kDropoutTable{"train.model.layers.N.dropout", kDropoutKeys,
                                          &kAnyLayerTable};

class DropoutLayer final : public Layer {
 public:
  explicit DropoutLayer(double rate) : rate_(rate) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    const int64_t number = layers.nextRandomLayer();
    if (!layers.training() || rate_ == 0) return x;
    return layers.ops().dropout(x, layers.randomKey(), rate_, number);
  }
  bool drawsRandomNumbers() const override { return rate_ > 0; }
  std::string meaning(std::string_view) const override { return {}; }
  std::string text(std::string_view) const override {
    return fmt::format("dropout rate={}", rate_);
  }

 private:
  const double rate_;
};

std::shared_ptr<const Layer> readDropout(const LayerType&, const yaml::MapReader& settings) {
  double rate = 0;
  settings.number("rate", rate);
  return std::make_shared<const DropoutLayer>(rate);
}

}  // namespace

LayerType dropoutLayer() {
  return {"dropout", "training: x / (1 - rate) or, at random, 0; evaluation: nothing",
          &kDropoutTable, readDropout};
}

}  // namespace dtf::model
