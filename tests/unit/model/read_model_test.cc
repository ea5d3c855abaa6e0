#include "common/model/read_model.h"

#include <gtest/gtest.h>

#include "common/model/model_text.h"
#include "tests/support/temporary_files.h"

namespace dtf::model {
namespace {

using testing::badConfigOf;

// Returns the model in a file's `model:`; sets `mistake` to the first line of the error.
ModelSpec modelOf(const std::string& text, std::string* mistake = nullptr) {
  yaml::Report report;
  const std::optional<yaml::YamlNode> root =
      yaml::parseYaml(text, report.addFile("t.yaml", text), report);
  ModelSpec model = readModel(*root, report);
  const std::string message = badConfigOf([&] { report.throwIfAny(); });
  if (mistake != nullptr)
    *mistake = message.substr(0, message.find('\n'));
  else
    EXPECT_EQ(message, "no error");
  return model;
}
std::string mistakeOf(const std::string& text) {
  std::string mistake;
  modelOf(text, &mistake);
  return mistake;
}
std::vector<std::string> namesOf(const ModelSpec& model) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : model.layers) names.push_back(layer.name);
  return names;
}

TEST(ReadModel, ReadsInputLayersLossAndMetrics) {
  const ModelSpec model = modelOf(
      "input: {shape: [2, 3]}\n"
      "layers:\n"
      "  - flatten\n"
      "  - dense: {units: 5, activation: tanh, from: flatten}\n"
      "loss: binary_crossentropy\n"
      "metrics: [accuracy, accuracy]\n");
  EXPECT_EQ(model.input_shape, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(model.layers.size(), 2u);
  EXPECT_EQ(model.layers[1].from, "flatten");
  EXPECT_EQ(model.layers[1].mark.line, 4);
  EXPECT_EQ(model.loss.kind, Loss::kSigmoidCrossEntropy);
  EXPECT_TRUE(model.accuracy);
  EXPECT_TRUE(model.metrics.empty());
}

TEST(ReadModel, LayersWithoutANameAreNumberedPastThoseThatAreGiven) {
  EXPECT_EQ(namesOf(modelOf("input: {shape: [4]}\n"
                            "layers: [relu, relu: {name: relu_1}, relu, tanh]\n"
                            "loss: mse\n")),
            (std::vector<std::string>{"relu", "relu_1", "relu_2", "tanh"}));
}

TEST(ReadModel, ANameIsGivenOnceAndFitsAFile) {
  const auto named = [](const std::string& first, const std::string& second) {
    return mistakeOf("input: {shape: [4]}\nlayers: [relu: {name: " + first +
                     "}, relu: {name: " + second + "}]\nloss: mse\n");
  };
  EXPECT_EQ(named("a", "b"), "no error");
  EXPECT_NE(named("a", "a").find("two layers are named 'a'"), std::string::npos);
  for (const char* const name : {"a/b", "-a", ".a", "'a b'"})
    EXPECT_NE(named("a", name).find("a layer's name has letters, digits"), std::string::npos)
        << name;
}

TEST(ReadModel, AnInputHasFromOneToSoManySizes) {
  const auto shaped = [](const std::string& shape) {
    return mistakeOf("input: {shape: " + shape + "}\nlayers: [relu]\nloss: mse\n");
  };
  EXPECT_EQ(shaped("[1000, 1000, 3]"), "no error");
  EXPECT_NE(shaped("[]").find("'shape' must have from 1 to "), std::string::npos);
  EXPECT_NE(shaped("[0]").find("'shape' must be from 1 to "), std::string::npos);
  EXPECT_NE(shaped("[1000000, 1000000, 1000000]").find("'shape' has more than "),
            std::string::npos);
}

TEST(ReadModel, AModelHasLayersOrAGraph) {
  const std::string ops = "{name: net, ops: [Relu: {name: y, inputs: [input]}], output: y}\n";
  const ModelSpec model = modelOf("input: {shape: [4]}\ngraph: " + ops + "loss: mse\n");
  ASSERT_EQ(model.layers.size(), 1u);
  EXPECT_EQ(model.layers[0].type, "graph");
  EXPECT_EQ(model.layers[0].name, "net");
  EXPECT_NE(mistakeOf("input: {shape: [4]}\nlayers: [relu]\ngraph: " + ops + "loss: mse\n")
                .find("a model has 'layers' or 'graph'"),
            std::string::npos);
  EXPECT_NE(mistakeOf("input: {shape: [4]}\nloss: mse\n").find("missing key 'layers' in 'model'"),
            std::string::npos);
  EXPECT_NE(mistakeOf("input: {shape: [4]}\nlayers: []\nloss: mse\n")
                .find("'layers' must have from 1 to "),
            std::string::npos);
}

TEST(ReadModel, AnUnknownLayerIsShownWithTheNearest) {
  EXPECT_EQ(mistakeOf("input: {shape: [4]}\nlayers: [dens: {units: 2}]\nloss: mse\n"),
            "t.yaml:2:10: error: unknown layer 'dens' - did you mean 'dense'?");
}

}  // namespace
}  // namespace dtf::model
