#include "common/model/layers/window_keys.h"

#include <gtest/gtest.h>

#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

constexpr yaml::Key kWindowKeys[] = {
    yaml::wholes("strides", 1, kWindowMax, "how far"),
    yaml::wholes("dilation_rate", 1, kWindowMax, "how wide"),
    paddingKey(),
};
constinit const yaml::Table kWindowTable{"layer", kWindowKeys};

// Returns the settings in the file, for a window of 3 x 2; sets `mistake` to the error.
WindowSettings settings(const std::string& text, std::string* mistake = nullptr) {
  yaml::Report report;
  const std::optional<yaml::YamlNode> node =
      yaml::parseYaml(text, report.addFile("f", text), report);
  const yaml::MapReader reader(*node, kWindowTable, "layer", report);
  WindowSettings window;
  window.size = {3, 2};
  window.read(reader, true);
  try {
    report.throwIfAny();
  } catch (const Error& error) {
    EXPECT_NE(mistake, nullptr) << error.message();
    if (mistake != nullptr) *mistake = error.message();
  }
  return window;
}

// The places of that window over images of 10 x 9, in a layer that pools.
graph::Window over(const WindowSettings& window) {
  ModelGraph model{graph::Graph(graph::standardOps()), {}, {}, {}, {}, {}, {}, {}, {}, {}};
  const ModelSpec spec;
  LayerBuilder layers(spec, model, 2, LayerBuilder::Use::kTraining);
  return window.over(layers, layers.ops().placeholder("x", DType::kFloat32, {2, 10, 9, 1}));
}

TEST(WindowSettings, WithoutKeysItStandsEverywhereInside) {
  const WindowSettings window = settings("{}");
  EXPECT_EQ(window.text("kernel_size"), "kernel_size=3x2 strides=1x1 padding=valid");
  EXPECT_EQ(over(window).height.positions(10), 8);
  EXPECT_EQ(over(window).width.positions(9), 8);
}

TEST(WindowSettings, APaddingIsAWordANumberOrFour) {
  EXPECT_EQ(settings("{padding: same}").text("kernel_size"),
            "kernel_size=3x2 strides=1x1 padding=same");
  EXPECT_EQ(settings("{padding: valid}").text("kernel_size"),
            "kernel_size=3x2 strides=1x1 padding=valid");
  EXPECT_EQ(settings("{padding: 1}").text("kernel_size"),
            "kernel_size=3x2 strides=1x1 padding=1,1,1,1");
  EXPECT_EQ(settings("{padding: [0, 1, 2, 3]}").text("kernel_size"),
            "kernel_size=3x2 strides=1x1 padding=0,1,2,3");
  const graph::Window padded = over(settings("{padding: [0, 1, 2, 3]}"));
  EXPECT_EQ(padded.height.positions(10), 9);
  EXPECT_EQ(padded.width.positions(9), 13);
}

TEST(WindowSettings, TheSamePaddingGivesAPositionForEachStride) {
  const graph::Window window = over(settings("{padding: same, strides: [2, 4]}"));
  EXPECT_EQ(window.height.positions(10), 5);
  EXPECT_EQ(window.width.positions(9), 3);
}

TEST(WindowSettings, ADilationMakesItWider) {
  const WindowSettings window = settings("{dilation_rate: [4, 1]}");
  EXPECT_EQ(window.text("kernel_size"),
            "kernel_size=3x2 strides=1x1 dilation_rate=4x1 padding=valid");
  EXPECT_EQ(over(window).height.positions(10), 2);
}

TEST(WindowSettings, NumbersOutOfRangeAreReported) {
  std::string mistake;
  settings("{strides: 0}", &mistake);
  EXPECT_NE(mistake.find("'strides' must be from 1 to 1024, got '0'"), std::string::npos)
      << mistake;
  settings("{padding: [1, 2]}", &mistake);
  EXPECT_NE(mistake.find("'padding' must be one number or 4 of them, got 2"), std::string::npos)
      << mistake;
}

}  // namespace
}  // namespace dtf::model
