// embedding: of each whole number in an example its row of a table, a variable [vocabulary, dimension]:
// [words] becomes [words, dimension] (Bengio et al., JMLR 3, 2003).

#include <fmt/format.h>

#include "common/model/layer_builder.h"
#include "common/model/layers/initializer_keys.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kEmbeddingKeys[] = {
    yaml::required(
        yaml::whole("vocabulary", 1, 1'000'000'000,
                    "rows of the table: the data have whole numbers from 0 to below it")),
    yaml::required(yaml::whole("dimension", 1, 1'000'000, "numbers of each row")),
    initializerKey("initializer", "default glorot_uniform"),
};
constinit const yaml::Table kEmbeddingTable{"train.model.layers.N.embedding", kEmbeddingKeys,
                                            &kAnyLayerTable};

struct EmbeddingSettings {
  int64_t vocabulary = 0;
  int64_t dimension = 0;
  std::string initializer = "glorot_uniform";
};

class EmbeddingLayer final : public Layer {
 public:
  explicit EmbeddingLayer(EmbeddingSettings settings) : settings_(std::move(settings)) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    const graph::Output indices = layers.asFed(x);
    checkSizes(layers, indices);
    const Shape table{settings_.vocabulary, settings_.dimension};
    return layers.ops().gather(layers.variable("embeddings", table, settings_.initializer),
                               indices);
  }

  std::string meaning(std::string_view name) const override {
    return fmt::format("embedding {}: vocabulary={} dimension={}", name, settings_.vocabulary,
                       settings_.dimension);
  }
  std::string text(std::string_view name) const override {
    return meaning(name) + " initializer=" + settings_.initializer;
  }

 private:
  void checkSizes(const LayerBuilder& layers, graph::Output indices) const {
    int64_t elements = 0;
    if (__builtin_mul_overflow(layers.shape(indices).elements(), settings_.dimension, &elements))
      layers.fail(fmt::format("layer '{}' makes {} numbers of each of {}: more than can be counted",
                              layers.layerName(), settings_.dimension,
                              layers.exampleShape(indices).str()));
  }

  const EmbeddingSettings settings_;
};

std::shared_ptr<const Layer> readEmbedding(const LayerType&, const yaml::MapReader& settings) {
  EmbeddingSettings embedding;
  settings.whole("vocabulary", embedding.vocabulary);
  settings.whole("dimension", embedding.dimension);
  readInitializer(settings, "initializer", embedding.initializer);
  return std::make_shared<const EmbeddingLayer>(std::move(embedding));
}

}  // namespace

LayerType embeddingLayer() {
  return {"embedding", "of each whole number of the data its row of a table", &kEmbeddingTable,
          readEmbedding};
}

}  // namespace dtf::model
