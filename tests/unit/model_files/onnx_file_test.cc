// tests/e2e/export_python_test.py compares the nodes' results with onnxruntime.

#include "common/model_files/onnx_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/model_files/onnx_texts.h"

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(OnnxFile, AProductAndItsBiasAreOneNodeAndTheScalingIsInside) {
  const std::string onnx = onnxOf(model::softmaxModel());
  EXPECT_THAT(opsOf(onnx), ElementsAre(Pair("Cast", 1), Pair("Gemm", 1), Pair("Identity", 2),
                                       Pair("Mul", 1), Pair("Reshape", 1), Pair("Softmax", 1)));
  EXPECT_THAT(textsAt(onnx, {7, 11, 1}), ElementsAre("features"));
  EXPECT_THAT(textsAt(onnx, {7, 12, 1}), ElementsAre("probabilities", "logits"));
  const std::vector<std::string> constants = textsAt(onnx, {7, 5, 8});
  EXPECT_THAT(constants, ::testing::Contains("softmax/weights"));
  EXPECT_THAT(constants, ::testing::Contains("softmax/biases"));
  EXPECT_THAT(textsAt(onnx, {14, 1}), ::testing::Contains("scaling"));
}

TEST(OnnxFile, CategoriesAreInputsOfTheirOwn) {
  model::ModelSpec model = model::softmaxModel();
  model.input_shape = {2};
  model.input_dtype = DType::kFloat32;
  model.categories = {{"user", 1}, {"tags", 3}};
  model.layers = {
      model::dense("numbers", 4),
      model::layerOf("embedding", "{categories: tags, input_dim: 9, output_dim: 4, combiner: mean}",
                     "tags"),
      model::layerOf("multiply", "{with: [numbers]}", "both"), model::dense("out", 10)};
  const std::string onnx = onnxOf(model);
  EXPECT_THAT(textsAt(onnx, {7, 11, 1}), ElementsAre("features", "categories/tags"))
      << "what nothing depends on needn't be fed";
  EXPECT_THAT(textsAt(onnx, {14, 2}),
              ::testing::Contains("features: float32 [batch, 2]; categories/user: int32 [batch, "
                                  "1]; categories/tags: int32 [batch, 3]"));
}

// Several words of a field: number 0 is none of them.
TEST(OnnxFile, ThePaddingOfCategoriesIsInside) {
  model::ModelSpec model = model::softmaxModel();
  model.input_shape = {2};
  model.input_dtype = DType::kFloat32;
  model.categories = {{"tags", 3, 9, "", true}};
  model.layers = {
      model::dense("numbers", 4),
      model::layerOf("embedding", "{categories: tags, input_dim: 9, output_dim: 4, combiner: mean}",
                     "tags"),
      model::layerOf("multiply", "{with: [numbers]}", "both"), model::dense("out", 10)};
  const std::string onnx = onnxOf(model);
  const std::vector<std::string> ops = textsAt(onnx, {7, 1, 4});
  for (const char* const op : {"Gather", "Cast", "Min", "Mul", "ReduceSum", "Max", "Div"})
    EXPECT_THAT(ops, ::testing::Contains(op));
}

// A layer of an operation that has no conversion.
class CurvedLayer final : public model::Layer {
 public:
  graph::Output build(model::LayerBuilder& layers, graph::Output x) const override {
    return layers.ops().huber(x, 1);
  }
  std::string meaning(std::string_view name) const override {
    return "curved " + std::string(name);
  }
};

TEST(OnnxFile, RefusesByNameAndLineWhatItHasNoWordsFor) {
  model::ModelSpec model = model::softmaxModel();
  model.layers.push_back(
      {"curved", "bend", {}, std::make_shared<const CurvedLayer>(), {"job.yaml", 12, 7}});
  try {
    onnxOf(model);
    ADD_FAILURE() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(),
                HasSubstr("job.yaml:12:7: error: layer 'bend' can't be exported to "
                          "ONNX: there is no conversion of curved layers (of their operation "
                          "Huber); .safetensors and .npz hold the variables"));
  }
}

// Loops inside other layers, too.
TEST(OnnxFile, LoopsHaveNoConversion) {
  for (const bool is_nested : {false, true}) {
    model::ModelSpec model = model::softmaxModel();
    model.input_shape = {5, 4};
    const char* const type = is_nested ? "block" : "lstm";
    const char* const keys = is_nested ? "layers: [{lstm: {units: 3}}]" : "units: 3";
    model.layers = {model::layerOf(type, keys, "memory"), model::dense("softmax", 10)};
    try {
      onnxOf(model);
      ADD_FAILURE() << "must throw";
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("layer 'memory"));
      EXPECT_THAT(error.message(),
                  HasSubstr("can't be exported to ONNX: there is no conversion of lstm layers"));
    }
  }
}

}  // namespace
}  // namespace dtf::model_files
