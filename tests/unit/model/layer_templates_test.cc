#include "common/model/layer_templates.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/model/model_graph.h"
#include "common/model/model_text.h"
#include "common/model/read_model.h"

namespace dtf::model {
namespace {

// A model of these blocks and layers, which are the first lines of the file m.yaml.
ModelSpec modelOf(const std::string& blocks_and_layers) {
  const std::string text = blocks_and_layers + "\ninput: {shape: [8, 8, 3]}\nloss: mse\n";
  yaml::Report report;
  const auto node = yaml::parseYaml(text, report.addFile("m.yaml", text), report);
  report.throwIfAny();
  ModelSpec model = readModel(*node, report);
  report.throwIfAny();
  return model;
}

std::string mistakesOf(const std::string& blocks_and_layers) {
  try {
    modelOf(blocks_and_layers);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    return error.message();
  }
  return "";
}

const std::string kTwice =
    "blocks:\n"
    "  twice:\n"
    "    parameters: {filters: , size: 3}\n"
    "    layers:\n"
    "      - conv2d: {filters: $filters, kernel_size: $size, padding: same}\n"
    "      - conv2d: {filters: $filters, kernel_size: $size, padding: same}\n";

TEST(LayerTemplates, AUseIsABlockOfItsLayers) {
  const std::string used = modelText(modelOf(
      kTwice + "layers: [twice: {name: a, filters: 4}, twice: {filters: 2, size: 5, repeat: 2}]"));
  const std::string written = modelText(modelOf(
      "layers:\n"
      "  - block: {name: a, layers: [conv2d: {filters: 4, kernel_size: 3, padding: same}, conv2d: "
      "{filters: 4, kernel_size: 3, padding: same}]}\n"
      "  - block: {repeat: 2, layers: [conv2d: {filters: 2, kernel_size: 5, padding: same}, "
      "conv2d: "
      "{filters: 2, kernel_size: 5, padding: same}]}\n"));
  EXPECT_EQ(used, written);
}

TEST(LayerTemplates, ABlockOfOneLayerIsThatLayer) {
  const std::string one =
      "blocks: {conv: {parameters: {n: }, layers: [conv2d: {filters: $n, kernel_size: 1}]}, act: "
      "{layers: "
      "[relu]}}\n";
  EXPECT_EQ(
      modelText(modelOf(one + "layers: [conv: {name: first, n: 2}, act, conv: {n: 3}]")),
      modelText(modelOf("layers: [conv2d: {name: first, filters: 2, kernel_size: 1}, relu, conv2d: "
                        "{filters: 3, kernel_size: 1}]")));
}

TEST(LayerTemplates, StandInOtherLayersAndInEachOther) {
  const std::string blocks = kTwice +
                             "  outer:\n"
                             "    parameters: {n: 3}\n"
                             "    layers: [residual: {layers: [twice: {filters: $n}]}]\n";
  EXPECT_EQ(modelText(modelOf(blocks + "layers: [outer, block: {layers: [outer: {n: 3}]}]")),
            modelText(modelOf(kTwice +
                              "layers: [residual: {layers: [twice: {filters: 3}]}, block: {layers: "
                              "[residual: {layers: [twice: {filters: 3}]}]}]")));
}

TEST(LayerTemplates, AMistakePointsToWhereTheValueWasWritten) {
  EXPECT_EQ(mistakesOf(kTwice + "layers: [twice: {filters: many}]").substr(0, 15),
            "m.yaml:7:27: er");
  EXPECT_NE(mistakesOf(kTwice + "layers: [twice: {filters: 1, height: 2}]")
                .find("m.yaml:7:30: error: block 'twice' has no parameter 'height'"),
            std::string::npos);
  EXPECT_NE(mistakesOf(kTwice + "layers: [twice]")
                .find("m.yaml:7:10: error: block 'twice' needs its parameter 'filters'"),
            std::string::npos);
  EXPECT_NE(mistakesOf("blocks: {b: {layers: [dense: {units: $n}]}}\nlayers: [b]")
                .find("m.yaml:1:38: error: block 'b' has no parameter 'n'"),
            std::string::npos);
}

// A shape that doesn't fit is found where the block is used, not where it is written.
TEST(LayerTemplates, ALayerThatCannotBeBuiltIsNamedWhereItsBlockIsUsed) {
  const ModelSpec model =
      modelOf("blocks: {b: {layers: [conv2d: {filters: 1, kernel_size: 99}]}}\n\nlayers: [b]");
  try {
    buildEvaluationGraph(model, 2);
    ADD_FAILURE() << "must throw";
  } catch (const Error& error) {
    EXPECT_TRUE(error.message().starts_with("m.yaml:3:10: error: layer 'conv2d'"))
        << error.message();
  }
}

TEST(LayerTemplates, RefusesWhatWouldBeAnotherThing) {
  EXPECT_NE(mistakesOf("blocks: {dense: {layers: [relu]}}\nlayers: [relu]").find("is a layer"),
            std::string::npos);
  EXPECT_NE(mistakesOf("blocks: {b: {parameters: {name: }, layers: [relu]}}\nlayers: [relu]")
                .find("every layer has a 'name'"),
            std::string::npos);
  EXPECT_NE(mistakesOf("blocks: {b: {layers: [b]}}\nlayers: [b]").find("does it use itself?"),
            std::string::npos);
  for (const char* text : {"blocks: 3\nlayers: [relu]", "blocks: {b: }\nlayers: [b]",
                           "blocks: {b: {layers: []}}\nlayers: [b]",
                           "blocks: {b: {layers: [relu], parameters: 3}}\nlayers: [b]"})
    EXPECT_NE(mistakesOf(text), "") << text;
}

// Two uses in each of 16 levels would be 65 536 layers.
TEST(LayerTemplates, AreBoundedTogether) {
  std::string blocks = "blocks:\n  b0: {layers: [relu, relu, relu, relu]}\n";
  for (int i = 1; i < 16; ++i)
    blocks += "  b" + std::to_string(i) + ": {layers: [b" + std::to_string(i - 1) + ", b" +
              std::to_string(i - 1) + ", b" + std::to_string(i - 1) + "]}\n";
  EXPECT_NE(mistakesOf(blocks + "layers: [b15]").find("more than 100000 values"),
            std::string::npos);
}

}  // namespace
}  // namespace dtf::model
