#include "common/model/inference_graph.h"

#include <gtest/gtest.h>

#include <array>

#include "common/graph/prune.h"
#include "tests/unit/model/models.h"

namespace dtf::model {
namespace {

TEST(InferenceGraph, GivesProbabilitiesWhereTheLossHasThem) {
  const std::pair<Loss, std::string> ops[] = {{Loss::kSoftmaxCrossEntropy, "Softmax"},
                                              {Loss::kSigmoidCrossEntropy, "Sigmoid"},
                                              {Loss::kMse, "BiasAdd"},
                                              {Loss::kMae, "BiasAdd"},
                                              {Loss::kHuber, "BiasAdd"},
                                              {Loss::kHinge, "BiasAdd"}};
  for (const auto& [loss, op] : ops) {
    ModelSpec model = softmaxModel();
    model.loss.kind = loss;
    const InferenceGraph built = buildInferenceGraph(model, 5);
    EXPECT_EQ(built.model.graph.node(built.outputs.node).op, op);
    EXPECT_EQ(built.model.graph.spec(built.outputs).shape, (Shape{5, 10}));
    EXPECT_EQ(outputName(model), op == "BiasAdd" ? "outputs" : "probabilities");
    const graph::Graph needed =
        graph::prune(built.model.graph, {}, std::array{built.outputs}).graph;
    EXPECT_EQ(needed.find("labels"), nullptr) << "nobody has labelled what is predicted";
  }
}

TEST(InferenceGraph, TheClassIsWhatTheAccuracyCounts) {
  ModelSpec model = softmaxModel();
  EXPECT_EQ(classOf(model, std::array{0.1F, 0.7F, 0.7F}), 1) << "of equal ones the first";
  for (const Loss loss : {Loss::kSigmoidCrossEntropy, Loss::kMse}) {
    model.loss.kind = loss;
    EXPECT_EQ(classOf(model, std::array{0.5F}), 0);
    EXPECT_EQ(classOf(model, std::array{0.6F}), 1);
  }
  model.loss.kind = Loss::kHinge;
  EXPECT_EQ(classOf(model, std::array{0.1F}), 1) << "a margin";
  EXPECT_EQ(classOf(model, std::array{-0.1F}), 0);
}

}  // namespace
}  // namespace dtf::model
