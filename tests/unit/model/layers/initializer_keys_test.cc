#include "common/model/layers/initializer_keys.h"

#include <gtest/gtest.h>

#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

TEST(InitializerKeys, AreAWordOrAConstant) {
  const std::string settings =
      "units: 3\nkernel_initializer: {constant: -0.25}\nbias_initializer: ones";
  const BuiltLayer built({layerOf("dense", settings, "d")}, {2});
  const auto initializerOf = [&built](const char* variable) {
    return built.node(variable).attribute<std::string>("initializer");
  };
  EXPECT_EQ(initializerOf("d/weights"), "constant=-0.25");
  EXPECT_EQ(initializerOf("d/biases"), "ones");
  EXPECT_NE(layerOf("dense", settings, "d")
                .layer->text("d")
                .find(" kernel_initializer=constant=-0.25 bias_initializer=ones"),
            std::string::npos);
  for (const char* wrong : {"constant", "{constant: x}", "{constant: .inf}", "{ones: 1}", "he",
                            "{constant: 1, ones: }"})
    EXPECT_THROW(layerOf("dense", "units: 3\nbias_initializer: " + std::string(wrong), "d"), Error)
        << wrong;
}

}  // namespace
}  // namespace dtf::model
