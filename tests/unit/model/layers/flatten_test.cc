#include <gtest/gtest.h>

#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

TEST(FlattenLayer, PutsTheElementsOfEachExampleInOneRow) {
  const BuiltLayer built({flatten()}, {2, 1, 2});
  EXPECT_EQ(built.shape, Shape({4}));
  EXPECT_EQ(graph::testing::evaluate(built.model.graph, {{built.input, {1, 2, 3, 4, 5, 6, 7, 8}}},
                                     built.output),
            (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(FlattenLayer, ARowStaysAsItIs) {
  const BuiltLayer built({flatten()}, {7});
  EXPECT_EQ(built.output, built.input) << "without a node";
}

TEST(FlattenLayer, ANumberForEachExampleBecomesARowOfOne) {
  EXPECT_EQ(BuiltLayer({flatten()}, {}).shape, Shape({1}));
}

TEST(FlattenLayer, HasNoSettingsOfItsOwn) {
  EXPECT_EQ(flatten().layer->meaning("flatten"), "flatten");
  EXPECT_NE(readFailure("flatten", "{units: 3}").find("unknown key 'units'"), std::string::npos);
}

}  // namespace
}  // namespace dtf::model
