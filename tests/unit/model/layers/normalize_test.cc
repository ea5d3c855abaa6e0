#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

// Of two examples of three numbers each.
std::vector<double> normalized(const std::string& settings) {
  const BuiltLayer built({layerOf("normalize", settings, "normalize")}, {3});
  EXPECT_EQ(built.variables(), "") << "nothing is trained";
  return graph::testing::evaluate(built.model.graph, {{built.input, {1, 2, 3, -1, 0, 30}}},
                                  built.output);
}

TEST(NormalizeLayer, SubtractsTheMeanAndDividesByTheDeviation) {
  const std::vector<double> each = normalized("{mean: [1, -2, 10], std: [2, 2, 0.5]}");
  const std::vector<double> wanted = {0, 2, -14, -1, 1, 40};
  ASSERT_EQ(each.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(each[i], wanted[i], 1e-6) << i;
  const std::vector<double> all = normalized("{mean: [1], std: [4]}");
  EXPECT_NEAR(all[1], 0.25, 1e-6);
  EXPECT_NEAR(all[5], 7.25, 1e-6);
}

TEST(NormalizeLayer, IsPartOfTheModelsMeaning) {
  EXPECT_EQ(layerOf("normalize", "{mean: [0.5, 1], std: [2]}", "normalize").layer->meaning("n"),
            "normalize n: mean=[0.5, 1] std=[2]");
}

TEST(NormalizeLayer, RefusesNumbersThatDoNotFit) {
  EXPECT_EQ(buildFailure({layerOf("normalize", "{mean: [1, 2], std: [1]}", "normalize", 5)}, {3}),
            "job.yaml:5:7: error: layer 'normalize' has 2 numbers for the last dimension of [3]: "
            "give one for each place, or one for all");
  EXPECT_NE(readFailure("normalize", "{mean: [0], std: [0]}").find("'std' must be more than 0"),
            std::string::npos);
  EXPECT_NE(readFailure("normalize", "{mean: [0], std: []}").find("'std' has from 1 to 4096"),
            std::string::npos);
  EXPECT_NE(readFailure("normalize", "{mean: [0]}").find("missing key 'std'"), std::string::npos);
}

}  // namespace
}  // namespace dtf::model
