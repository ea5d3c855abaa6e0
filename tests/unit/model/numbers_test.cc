#include "common/model/numbers.h"

#include <gtest/gtest.h>

#include "common/graph/op_def.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::model {
namespace {

std::vector<double> valuesOf(const std::vector<double>& numbers, int64_t count) {
  graph::Graph graph(graph::standardOps());
  graph::Builder ops(graph);
  const graph::Output vector = vectorOf(ops, numbers, count);
  EXPECT_EQ(ops.graph().spec(vector).shape, Shape{count});
  return graph::testing::evaluate(graph, {}, vector);
}

TEST(Numbers, AreOneForEachOrOneForAll) {
  EXPECT_EQ(valuesOf({1, 1, 2, 2, 0.5}, 5), (std::vector<double>{1, 1, 2, 2, 0.5}));
  EXPECT_EQ(valuesOf({3}, 4), (std::vector<double>{3, 3, 3, 3}));
}

TEST(Numbers, OfAStretchOfEqualOnesThereIsOneConstant) {
  graph::Graph graph(graph::standardOps());
  graph::Builder ops(graph);
  vectorOf(ops, {1, 1, 1, 2, 2, 2}, 6);
  EXPECT_EQ(graph.nodes().size(), 3U) << "two constants, joined";
}

TEST(Numbers, AreShortInADeclaration) {
  EXPECT_EQ(numbersText({1, 2.5}), "[1, 2.5]");
  std::vector<double> many(33, 1);
  const std::string text = numbersText(many);
  EXPECT_EQ(text.find("(33 numbers, "), 0U) << text;
  many[32] = 2;
  EXPECT_NE(numbersText(many), text);
}

}  // namespace
}  // namespace dtf::model
