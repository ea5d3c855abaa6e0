#include <gtest/gtest.h>

#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

TEST(DropoutLayer, DrawsFromTheStepsKeyWhileItTrains) {
  const BuiltLayer built({dropout("d", 0.25)}, {6});
  const graph::Node& node = built.node("d/Dropout");
  EXPECT_EQ(built.output.node, node.id);
  EXPECT_EQ(node.attribute<double>("rate"), 0.25);
  EXPECT_EQ(node.inputs[1], *built.model.random_key);
  EXPECT_EQ(built.shape, Shape({6}));
}

TEST(DropoutLayer, AnEvaluationAndARateOfZeroLeaveItOut) {
  const BuiltLayer evaluated({dropout("d", 0.25)}, {6}, false);
  EXPECT_EQ(evaluated.output, evaluated.input);
  const BuiltLayer without({dropout("d", 0)}, {6});
  EXPECT_EQ(without.output, without.input);
}

// A layer of rate 0 has a number, too: switching it off doesn't change the draws of later layers.
TEST(DropoutLayer, EachHasANumberOfItsOwn) {
  const auto numberOfLast = [](double first_rate) {
    const BuiltLayer built({dropout("a", first_rate), dropout("b", 0.5)}, {6});
    return built.node("b/Dropout").attribute<int64_t>("layer");
  };
  EXPECT_EQ(numberOfLast(0.5), 1);
  EXPECT_EQ(numberOfLast(0), 1);
}

TEST(DropoutLayer, ItsRateIsNoPartOfWhatTheModelMeans) {
  const LayerSpec layer = dropout("d", 0.25);
  EXPECT_EQ(layer.layer->meaning("d"), "");
  EXPECT_TRUE(layer.layer->drawsRandomNumbers());
  EXPECT_FALSE(dropout("d", 0).layer->drawsRandomNumbers());
}

TEST(DropoutLayer, ARateIsAProbabilityBelowOne) {
  EXPECT_NE(readFailure("dropout", "{rate: 1}").find("'rate' must be "), std::string::npos);
  EXPECT_NE(readFailure("dropout", "{rate: -0.1}").find("'rate' must be "), std::string::npos);
  EXPECT_NE(readFailure("dropout", "{}").find("missing key 'rate'"), std::string::npos);
  EXPECT_EQ(readFailure("dropout", "{rate: 0.999}"), "no error");
}

}  // namespace
}  // namespace dtf::model
