// What the nodes compute is compared with onnxruntime in tests/e2e/export_python_test.py.

#include "common/model_files/onnx_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <protozero/pbf_reader.hpp>

#include "common/base/error.h"
#include "common/model/layer_builder.h"
#include "common/model/model_graph.h"
#include "tests/unit/model/models.h"

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::vector<NamedTensor> zerosFor(const model::ModelSpec& model) {
  std::vector<NamedTensor> variables;
  const model::ModelGraph built = model::buildEvaluationGraph(model, 1);
  for (const model::ModelVariable& variable : built.variables)
    variables.push_back({built.graph.node(variable.value.node).name,
                         Tensor(DType::kFloat32, built.graph.spec(variable.value).shape)});
  return variables;
}

std::string onnxOf(const model::ModelSpec& model) {
  const std::vector<NamedTensor> variables = zerosFor(model);
  return encodeOnnx({"job", 7, false, model, variables});
}

// What is under `field` of a message, at every level of `path`.
std::vector<std::string> textsAt(const std::string& bytes, std::vector<uint32_t> path) {
  std::vector<std::string> found;
  const uint32_t field = path.front();
  path.erase(path.begin());
  protozero::pbf_reader reader(bytes);
  while (reader.next()) {
    if (reader.tag() != field || reader.wire_type() != protozero::pbf_wire_type::length_delimited) {
      reader.skip();
      continue;
    }
    const std::string inner = reader.get_string();
    if (path.empty()) {
      found.push_back(inner);
      continue;
    }
    for (std::string& text : textsAt(inner, path)) found.push_back(std::move(text));
  }
  return found;
}

// Of ModelProto.graph.node.op_type and so on.
std::map<std::string, int> opsOf(const std::string& onnx) {
  std::map<std::string, int> ops;
  for (const std::string& op : textsAt(onnx, {7, 1, 4})) ++ops[op];
  return ops;
}

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
      model::layerOf("embedding", "{categories: tags, vocabulary: 9, dimension: 4, combiner: mean}",
                     "tags"),
      model::layerOf("multiply", "{with: [numbers]}", "both"), model::dense("out", 10)};
  const std::string onnx = onnxOf(model);
  EXPECT_THAT(textsAt(onnx, {7, 11, 1}), ElementsAre("features", "categories/tags"))
      << "what nothing depends on needn't be fed";
  EXPECT_THAT(textsAt(onnx, {14, 2}),
              ::testing::Contains("features: float32 [batch, 2]; categories/user: int32 [batch, "
                                  "1]; categories/tags: int32 [batch, 3]"));
}

// One turn at the beginning and one before what reads an example as a row.
TEST(OnnxFile, ImagesStayChannelsFirstBetweenConvolutions) {
  model::ModelSpec model = model::softmaxModel();
  model.layers = {model::layerOf("conv2d", "filters: 3\nkernel: 3\nactivation: relu", "first"),
                  model::layerOf("max_pool", "size: 2", "pool"),
                  model::layerOf("conv2d", "filters: 5\nkernel: 3\nactivation: gelu", "second"),
                  model::layerOf("avg_pool", "size: 2", "means"),
                  model::layerOf("relu6", "{}", "bounded"),
                  model::flatten(),
                  model::dense("softmax", 10)};
  const std::map<std::string, int> ops = opsOf(onnxOf(model));
  EXPECT_EQ(ops.at("Transpose"), 2);
  EXPECT_EQ(ops.at("Conv"), 2);
  EXPECT_EQ(ops.count("Add"), 1u) << "of gelu, no bias";
  EXPECT_EQ(ops.at("Clip"), 1);
}

TEST(OnnxFile, AfterAGlobalPoolingNothingIsTurnedBack) {
  model::ModelSpec model = model::softmaxModel();
  model.layers = {model::layerOf("depthwise_conv2d", "kernel: 3\nmultiplier: 4", "first"),
                  model::layerOf("global_avg_pool", "{}", "means"), model::dense("softmax", 10)};
  EXPECT_EQ(opsOf(onnxOf(model)).at("Transpose"), 1);
}

// The values of the initializer of that name.
std::vector<float> initializer(const std::string& onnx, const std::string& name) {
  for (const std::string& tensor : textsAt(onnx, {7, 5})) {
    if (textsAt(tensor, {8}) != std::vector{name}) continue;
    const std::string raw = textsAt(tensor, {9}).at(0);
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), values.size() * sizeof(float));
    return values;
  }
  ADD_FAILURE() << "no initializer " << name;
  return {};
}

// Their scales and offsets are constants of the graph, no variables.
TEST(OnnxFile, NormsWithoutTrainedScaleOrOffsetAreFactorsAndSummands) {
  model::ModelSpec model = model::softmaxModel();
  model.input_shape = {4};
  model.layers = {
      model::layerOf("normalize", "mean: [1, 1, 3, 5]\nstd: [2, 2, 4, 0.5]", "known"),
      model::layerOf("normalize", "mean: [3]\nstd: [0.25]", "alike"),
      model::layerOf("batch_norm", "scale: false\nepsilon: 0.25", "centered"),
      model::layerOf("batch_norm", "scale: false\ncenter: false\nepsilon: 0.25", "plain"),
      model::dense("softmax", 10)};
  const std::string onnx = onnxOf(model);
  EXPECT_EQ(opsOf(onnx).count("Concat"), 0u);
  const auto named = [&onnx](const std::string& layer, const std::string& what) {
    for (const std::string& name : textsAt(onnx, {7, 5, 8}))
      if (name.starts_with(layer) && name.ends_with(what)) return initializer(onnx, name);
    ADD_FAILURE() << "no " << what << " of " << layer;
    return std::vector<float>{};
  };
  EXPECT_THAT(named("known", "/factors"), ElementsAre(0.5F, 0.5F, 0.25F, 2.0F));
  EXPECT_THAT(named("known", "/summands"), ElementsAre(-0.5F, -0.5F, -0.75F, -10.0F));
  EXPECT_THAT(named("alike", "/factors"), ElementsAre(4.0F, 4.0F, 4.0F, 4.0F));
  EXPECT_THAT(named("alike", "/summands"), ElementsAre(-12.0F, -12.0F, -12.0F, -12.0F));
  // zerosFor() gives them a variance of 0.
  EXPECT_THAT(named("centered", "/factors"), ElementsAre(2.0F, 2.0F, 2.0F, 2.0F));
  EXPECT_THAT(named("plain", "/factors"), ElementsAre(2.0F, 2.0F, 2.0F, 2.0F));
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

// Also within others, and whatever it begins with.
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
