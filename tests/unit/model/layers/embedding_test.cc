#include <gtest/gtest.h>

#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

// Examples of three numbers, each from 0 to 4.
ModelSpec embeddingModel(DType input) {
  ModelSpec model = softmaxModel();
  model.input_shape = {3};
  model.input_dtype = input;
  model.layers = {layerOf("embedding", "{input_dim: 5, output_dim: 2}", "words", 7), flatten(),
                  dense("out", 4)};
  return model;
}

std::string embeddingFailureOf(const ModelSpec& model) {
  try {
    buildTrainingGraph(model, 2);
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

// float32 lacks some whole numbers: two of them would share a row.
TEST(EmbeddingLayer, ReadsNoFloats) {
  EXPECT_NE(embeddingFailureOf(embeddingModel(DType::kFloat32))
                .find("layer 'words' looks whole numbers up, and the features are float32"),
            std::string::npos)
      << embeddingFailureOf(embeddingModel(DType::kFloat32));
}

TEST(EmbeddingLayer, ReadsWholeNumbersAsTheyAreFed) {
  for (const DType input : {DType::kUInt8, DType::kInt32}) {
    const ModelGraph model = buildTrainingGraph(embeddingModel(input), 2);
    const graph::Output looked_up = model.layers[0].output;
    EXPECT_EQ(model.graph.spec(looked_up).shape, (Shape{2, 3, 2})) << dtypeName(input);
    EXPECT_EQ(model.graph.node(looked_up.node).inputs[1], model.features)
        << "pixels are not divided by 255 on their way to it";
    const std::vector<double> table = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41};
    const auto rows = graph::testing::evaluate(
        model.graph, {{model.features, {4, 0, 1, 1, 1, 3}}, {model.variables[0].value, table}},
        looked_up);
    EXPECT_EQ(rows, (std::vector<double>{40, 41, 0, 1, 10, 11, 10, 11, 10, 11, 30, 31}));
  }
}

TEST(EmbeddingLayer, MayStandBehindAnotherShapeOfTheExamples) {
  ModelSpec model = embeddingModel(DType::kUInt8);
  model.input_shape = {3, 1};
  model.layers.insert(model.layers.begin(), flatten());
  const ModelGraph built = buildTrainingGraph(model, 2);
  EXPECT_EQ(built.graph.spec(built.layers[1].output).shape, (Shape{2, 3, 2}));
}

TEST(EmbeddingLayer, ItsGradientIsOfWhatWasLookedUp) {
  const ModelGraph model =
      buildTrainingGraph(embeddingModel(DType::kInt32), 2, TableGradient::kSparse);
  EXPECT_EQ(model.variables[0].indices, model.features);
  EXPECT_EQ(model.graph.spec(*model.variables[0].gradient).shape, (Shape{2, 3, 2}));
  EXPECT_EQ(model.graph.node(*model.variables[0].update).op, "ApplySparseGradient");
  EXPECT_FALSE(model.variables[1].indices) << "the kernel of a dense layer";
}

TEST(EmbeddingLayer, ItsIndicesMayHaveAnotherShapeThanTheExamples) {
  ModelSpec spec = embeddingModel(DType::kInt32);
  ModelGraph whole = buildTrainingGraph(spec, 2, TableGradient::kSparse);
  EXPECT_TRUE(whole.variables[0].indices);
  spec.input_shape = {3, 1};
  spec.layers.insert(spec.layers.begin(), flatten());
  whole = buildTrainingGraph(spec, 2, TableGradient::kSparse);
  EXPECT_TRUE(whole.variables[0].indices) << "of examples of another shape";
  EXPECT_NE(whole.variables[0].indices, whole.features);
}

// A caller asks for rows if its optimizer supports them.
TEST(EmbeddingLayer, ItsGradientIsOfTheWholeTableUnlessRowsAreAskedFor) {
  const ModelGraph model = buildTrainingGraph(embeddingModel(DType::kInt32), 2);
  EXPECT_FALSE(model.variables[0].indices);
  EXPECT_EQ(model.graph.node(model.variables[0].gradient->node).op, "UnsortedSegmentSum");
  EXPECT_EQ(model.graph.spec(*model.variables[0].gradient).shape, (Shape{5, 2}));
}

// A look-up passes no gradient to another layer's output.
TEST(EmbeddingLayer, ReadsNoOtherLayersOutput) {
  ModelSpec model = embeddingModel(DType::kFloat32);
  model.layers.insert(model.layers.begin(), dense("before", 3));
  EXPECT_NE(embeddingFailureOf(model).find("job.yaml:7:7: error: layer 'words' reads the examples "
                                           "themselves, not the output of a layer"),
            std::string::npos)
      << embeddingFailureOf(model);
}

// Beside two numbers: two categories of a shop, three of tags.
ModelSpec withCategories(const std::string& layer) {
  ModelSpec model = embeddingModel(DType::kFloat32);
  model.input_shape = {2};
  model.categories = {{"shop", 2}, {"tags", 3, 5}};
  model.layers = {layerOf("embedding", layer, "tags", 7), flatten(), dense("out", 4)};
  return model;
}

TEST(EmbeddingLayer, ReadsCategoriesBesideTheFeatures) {
  const ModelGraph model = buildTrainingGraph(
      withCategories("{categories: tags, input_dim: 5, output_dim: 2}"), 2, TableGradient::kSparse);
  ASSERT_EQ(model.categories.size(), 2u);
  EXPECT_EQ(inputsOf(model),
            (std::vector<graph::Output>{model.features, model.labels, model.categories[0],
                                        model.categories[1]}));
  EXPECT_EQ(model.graph.node(model.categories[1].node).name, "categories/tags");
  EXPECT_EQ(model.graph.spec(model.categories[1]), (graph::TensorSpec{DType::kInt32, Shape{2, 3}}));
  EXPECT_EQ(model.graph.spec(model.layers[0].output).shape, (Shape{2, 3, 2}));
  EXPECT_EQ(model.variables[0].indices, model.categories[1]);
  EXPECT_EQ(model.variables[0].indices_input, 3u);
}

TEST(EmbeddingLayer, CombinesTheRowsOfAnExample) {
  for (const bool mean : {true, false}) {
    const std::string combiner = mean ? "mean" : "sum";
    const ModelGraph model = buildTrainingGraph(
        withCategories("{categories: tags, input_dim: 5, output_dim: 2, combiner: " + combiner +
                       "}"),
        2, TableGradient::kSparse);
    const graph::Output combined = model.layers[0].output;
    EXPECT_EQ(model.graph.spec(combined).shape, (Shape{2, 2}));
    const auto rows = graph::testing::evaluate(
        model.graph,
        {{model.categories[1], {4, 0, 2, 1, 1, 1}},
         {model.variables[0].value, {0, 3, 30, 33, 60, 63, 90, 93, 120, 123}}},
        combined);
    EXPECT_EQ(rows, mean ? (std::vector<double>{60, 63, 30, 33})
                         : (std::vector<double>{180, 189, 90, 99}));
    EXPECT_EQ(model.variables[0].indices, model.categories[1]) << "its gradient is still of rows";
  }
}

// Number 0 stands behind the last word of an example.
TEST(EmbeddingLayer, ReadsZerosForThePadding) {
  const std::vector<double> table = {7, 7, 30, 33, 60, 63, 90, 93, 120, 123};
  for (const std::string combiner : {"", "sum", "mean"}) {
    ModelSpec spec = withCategories("{categories: tags, input_dim: 5, output_dim: 2" +
                                    (combiner.empty() ? "" : ", combiner: " + combiner) + "}");
    spec.categories[1].is_padded = true;
    const ModelGraph model = buildTrainingGraph(spec, 3, TableGradient::kSparse);
    const graph::Output combined = model.layers[0].output;
    const auto rows = graph::testing::evaluate(
        model.graph,
        {{model.categories[1], {4, 2, 0, 0, 0, 0, 1, 0, 0}}, {model.variables[0].value, table}},
        combined);
    EXPECT_EQ(rows, combiner == "sum"    ? (std::vector<double>{180, 186, 0, 0, 30, 33})
                    : combiner == "mean" ? (std::vector<double>{90, 93, 0, 0, 30, 33})
                                         : (std::vector<double>{120, 123, 60, 63, 0, 0, 0, 0, 0, 0,
                                                                0, 0, 30, 33, 0, 0, 0, 0}));
    EXPECT_EQ(model.variables[0].indices, model.categories[1]) << "its gradient is still of rows";
  }
}

TEST(EmbeddingLayer, FirstCategoriesMayBeTheFeatures) {
  ModelSpec spec = withCategories("{categories: shop, input_dim: 9, output_dim: 2}");
  spec.input_dtype = DType::kInt32;
  spec.features_are_categories = true;
  const ModelGraph model = buildTrainingGraph(spec, 2, TableGradient::kSparse);
  EXPECT_EQ(model.categories[0], model.features);
  EXPECT_EQ(inputsOf(model).size(), 3u) << "features, labels, tags";
  EXPECT_EQ(model.variables[0].indices_input, 0u);
}

TEST(EmbeddingLayer, CategoriesThatItCannotReadAreNamed) {
  EXPECT_EQ(
      embeddingFailureOf(withCategories("{categories: tag, input_dim: 5, output_dim: 2}")),
      "job.yaml:7:7: error: layer 'tags' reads the categories 'tag', and there are none of that "
      "name - did you mean 'tags'?");
  EXPECT_EQ(
      embeddingFailureOf(withCategories("{categories: tags, input_dim: 4, output_dim: 2}")),
      "job.yaml:7:7: error: layer 'tags' has a vocabulary of 4, and the categories 'tags' are "
      "from 0 to 4: give it at least 5");
  ModelSpec none = withCategories("{categories: tags, input_dim: 5, output_dim: 2}");
  none.categories.clear();
  EXPECT_NE(embeddingFailureOf(none).find("the data have none: see categorical_columns"),
            std::string::npos);
}

TEST(EmbeddingLayer, WhatNobodyReadsIsKnown) {
  const ModelSpec spec = withCategories("{categories: tags, input_dim: 5, output_dim: 2}");
  EXPECT_EQ(unreadInputsOf(spec),
            (std::vector<std::string>{"the features", "the categories 'shop'"}));
  EXPECT_EQ(unreadInputsOf(embeddingModel(DType::kInt32)), std::vector<std::string>{});
}

TEST(EmbeddingLayer, TheFeaturesMayBeKnownToBeBeyondItsTable) {
  ModelSpec spec = embeddingModel(DType::kInt32);
  spec.categories = {{"shop", 3, 9}};
  spec.features_are_categories = true;
  EXPECT_EQ(embeddingFailureOf(spec),
            "job.yaml:7:7: error: layer 'words' has a vocabulary of 5, and the categories 'shop' "
            "are from 0 to 8: give it at least 9");
}

TEST(EmbeddingLayer, EachTableHasAVocabularyOfItsInput) {
  ModelSpec spec = withCategories("{categories: tags, input_dim: 5, output_dim: 2}");
  spec.layers.insert(spec.layers.begin(),
                     layerOf("embedding", "{categories: shop, input_dim: 9, output_dim: 2}", "s"));
  spec.layers.insert(spec.layers.begin() + 1, flatten());
  const std::vector<Vocabulary> found = vocabulariesOf(spec);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].input, 2u);
  EXPECT_EQ(found[0].size, 9);
  EXPECT_EQ(found[0].layer, "s");
  EXPECT_EQ(found[1].input, 3u);
  EXPECT_EQ(found[1].layer, "tags");
}

TEST(EmbeddingLayer, ItsMeaningIsItsTable) {
  const LayerSpec layer =
      layerOf("embedding", "{input_dim: 9, output_dim: 3, embeddings_initializer: zeros}", "e");
  EXPECT_EQ(layer.layer->meaning("e"), "embedding e: input_dim=9 output_dim=3");
  EXPECT_EQ(layer.layer->text("e"),
            "embedding e: input_dim=9 output_dim=3 embeddings_initializer=zeros");
  const LayerSpec combined =
      layerOf("embedding", "{input_dim: 9, output_dim: 3, categories: c, combiner: sum}", "e");
  EXPECT_EQ(combined.layer->meaning("e"),
            "embedding e: input_dim=9 output_dim=3 categories=c combiner=sum");
  EXPECT_THROW(layerOf("embedding", "{input_dim: 0, output_dim: 3}", "e"), Error);
  EXPECT_THROW(layerOf("embedding", "{input_dim: 9, output_dim: 3, categories: c, from: a}", "e"),
               Error);
}

}  // namespace
}  // namespace dtf::model
