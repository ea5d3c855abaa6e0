#include <gtest/gtest.h>

#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

// Examples of three numbers, each one of five.
ModelSpec embeddingModel(DType input) {
  ModelSpec model = softmaxModel();
  model.input_shape = {3};
  model.input_dtype = input;
  model.layers = {layerOf("embedding", "{vocabulary: 5, dimension: 2}", "words", 7), flatten(),
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

TEST(EmbeddingLayer, ReadsWhatIsFedWhateverItsType) {
  for (const DType input : {DType::kUInt8, DType::kInt32, DType::kFloat32}) {
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
  ModelSpec spec = embeddingModel(DType::kFloat32);
  ModelGraph whole = buildTrainingGraph(spec, 2, TableGradient::kSparse);
  EXPECT_TRUE(whole.variables[0].indices);
  spec.input_shape = {3, 1};
  spec.layers.insert(spec.layers.begin(), flatten());
  whole = buildTrainingGraph(spec, 2, TableGradient::kSparse);
  EXPECT_TRUE(whole.variables[0].indices) << "of examples of another shape";
  EXPECT_NE(whole.variables[0].indices, whole.features);
}

// Rows are for who knows that the optimizer takes them.
TEST(EmbeddingLayer, ItsGradientIsOfTheWholeTableUnlessRowsAreAskedFor) {
  const ModelGraph model = buildTrainingGraph(embeddingModel(DType::kInt32), 2);
  EXPECT_FALSE(model.variables[0].indices);
  EXPECT_EQ(model.graph.node(model.variables[0].gradient->node).op, "UnsortedSegmentSum");
  EXPECT_EQ(model.graph.spec(*model.variables[0].gradient).shape, (Shape{5, 2}));
}

// What another layer gives has no gradient through a look-up.
TEST(EmbeddingLayer, ReadsNoOtherLayersOutput) {
  ModelSpec model = embeddingModel(DType::kFloat32);
  model.layers.insert(model.layers.begin(), dense("before", 3));
  EXPECT_NE(embeddingFailureOf(model).find(
                "job.yaml:7:7: error: layer 'words' reads the examples as they "
                "are, and not what a layer made of them"),
            std::string::npos)
      << embeddingFailureOf(model);
}

TEST(EmbeddingLayer, ItsMeaningIsItsTable) {
  const LayerSpec layer =
      layerOf("embedding", "{vocabulary: 9, dimension: 3, initializer: zeros}", "e");
  EXPECT_EQ(layer.layer->meaning("e"), "embedding e: vocabulary=9 dimension=3");
  EXPECT_EQ(layer.layer->text("e"), "embedding e: vocabulary=9 dimension=3 initializer=zeros");
  EXPECT_THROW(layerOf("embedding", "{vocabulary: 0, dimension: 3}", "e"), Error);
}

}  // namespace
}  // namespace dtf::model
