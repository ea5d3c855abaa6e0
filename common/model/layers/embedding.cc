// embedding: looks up a row of a table for each whole number of an example (Bengio et al., JMLR 3,
// 2003). The table is a variable [input_dim, output_dim]; [words] becomes [words, output_dim]. The
// numbers are the features, or categories fed beside them. Of categories that are padded (several
// words in a field of a table) number 0 is no word: its row counts as zeros, and not for a mean.

#include <fmt/format.h>

#include <optional>

#include "common/base/check.h"
#include "common/model/layer_builder.h"
#include "common/model/layers/initializer_keys.h"
#include "common/model/layers/layers.h"
#include "common/yaml/keys.h"

namespace dtf::model {

namespace {

constexpr yaml::Key kEmbeddingKeys[] = {
    yaml::required(
        yaml::whole("input_dim", 1, 1'000'000'000,
                    "rows of the table: the data have whole numbers from 0 to below it")),
    yaml::required(yaml::whole("output_dim", 1, 1'000'000, "numbers of each row")),
    yaml::text("categories", "their name in the data; default: the features"),
    yaml::choice("combiner", "mean|sum", "",
                 "one row from the rows of an example; default: all rows"),
    initializerKey("embeddings_initializer",
                   "default random_uniform, Keras's; with 'vocabulary' glorot_uniform"),
};
constinit const yaml::Table kEmbeddingTable{"train.model.layers.N.embedding", kEmbeddingKeys,
                                            &kAnyLayerTable};

enum class Combiner : uint8_t { kMean, kSum };

struct EmbeddingSettings {
  int64_t vocabulary = 0;
  int64_t dimension = 0;
  std::string categories;  // empty: the features
  std::optional<Combiner> combiner;
  std::string initializer = "random_uniform";
};

class EmbeddingLayer final : public Layer {
 public:
  explicit EmbeddingLayer(EmbeddingSettings settings) : settings_(std::move(settings)) {}

  graph::Output build(LayerBuilder& layers, graph::Output x) const override {
    const graph::Output indices =
        settings_.categories.empty()
            ? layers.indices(x, settings_.vocabulary)
            : layers.categories(settings_.categories, settings_.vocabulary);
    checkSizes(layers, indices);
    const Shape table{settings_.vocabulary, settings_.dimension};
    const graph::Output embeddings =
        layers.variable("embeddings", table, settings_.initializer, "embeddings_initializer");
    const graph::Output rows = layers.ops().gather(embeddings, indices);
    if (!layers.isPadded(settings_.categories)) return combined(layers, rows);
    const graph::Output are_words = maskOf(layers, indices);
    return combinedWords(layers, layers.ops().mul(rows, are_words), are_words);
  }

  bool looksUpFeatures() const override { return settings_.categories.empty(); }

  std::string meaning(std::string_view name) const override {
    std::string text = fmt::format("embedding {}: input_dim={} output_dim={}", name,
                                   settings_.vocabulary, settings_.dimension);
    if (!settings_.categories.empty()) text += " categories=" + settings_.categories;
    if (settings_.combiner)
      text += *settings_.combiner == Combiner::kMean ? " combiner=mean" : " combiner=sum";
    return text;
  }
  std::string text(std::string_view name) const override {
    return meaning(name) + " embeddings_initializer=" + settings_.initializer;
  }

 private:
  // Returns 1 for each word, and 0 for the padding: [..., words, 1]. Numbers beyond 2^24 lose
  // digits as float32, and stay above 1.
  static graph::Output maskOf(LayerBuilder& layers, graph::Output indices) {
    graph::Builder& ops = layers.ops();
    std::vector<int64_t> dims = layers.shape(indices).dims();
    DTF_CHECK(dims.size() > 1);
    dims.push_back(1);
    const graph::Output numbers = ops.reshape(ops.cast(indices, DType::kFloat32), Shape(dims));
    return ops.minimum(numbers, ops.constant(Shape{1}, 1));
  }

  // As combined(); `rows` are zeros where `are_words` is. A mean of no word is 0.
  graph::Output combinedWords(LayerBuilder& layers, graph::Output rows,
                              graph::Output are_words) const {
    if (settings_.combiner != Combiner::kMean) return combined(layers, rows);
    graph::Builder& ops = layers.ops();
    const Shape axis{layers.shape(rows).rank() - 2};
    const graph::Output words = ops.maximum(ops.sum(are_words, axis), ops.constant(Shape{1}, 1));
    return ops.div(ops.sum(rows, axis), words);
  }

  // [..., words, dimension] becomes [..., dimension].
  graph::Output combined(LayerBuilder& layers, graph::Output rows) const {
    if (!settings_.combiner) return rows;
    const int64_t rank = layers.shape(rows).rank();
    if (rank < 3)
      layers.fail(fmt::format("layer '{}' has one row for each example: it needs no combiner",
                              layers.layerName()));
    const Shape axis{rank - 2};
    return *settings_.combiner == Combiner::kMean ? layers.ops().mean(rows, axis)
                                                  : layers.ops().sum(rows, axis);
  }

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
  settings.whole("input_dim", embedding.vocabulary);
  settings.whole("output_dim", embedding.dimension);
  if (settings.text("categories", embedding.categories) && settings.find("from") != nullptr)
    settings.report().error(settings.find("from")->key_place,
                            "an embedding of 'categories' reads no layer: leave out 'from'");
  Combiner combiner = Combiner::kMean;
  if (settings.choice("combiner", combiner)) embedding.combiner = combiner;
  readInitializer(settings, "embeddings_initializer", embedding.initializer);
  return std::make_shared<const EmbeddingLayer>(std::move(embedding));
}

}  // namespace

LayerType embeddingLayer() {
  return {"embedding", "a row of a table for each whole number of the data", &kEmbeddingTable,
          readEmbedding};
}

}  // namespace dtf::model
