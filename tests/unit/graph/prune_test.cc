#include "common/graph/prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/random_graph.h"

namespace dtf::graph {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::errorText;
using testing::evaluate;
using ::testing::HasSubstr;

std::vector<std::string> namesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) names.push_back(node.name);
  return names;
}

// x -> relu -> tanh -> loss, with w in the product before relu, and a branch that ends in `other`.
class PruneTest : public ::testing::Test {
 protected:
  Graph graph_{standardOps()};
  Builder b_{graph_};
  Output x_ = b_.placeholder("x", DType::kFloat32, {2, 2});
  Output w_ = b_.variable("w", {2, 2});
  Output relu_ = b_.relu(b_.matMul(x_, w_));
  Output tanh_ = b_.tanh(relu_);
  Output other_ = b_.sigmoid(relu_);
  Output loss_ = b_.mean(tanh_);
};

TEST_F(PruneTest, AFetchKeepsItsAncestorsOnly) {
  const Pruned pruned = prune(graph_, {}, std::array{tanh_});
  EXPECT_THAT(namesOf(pruned.graph), ElementsAre("x", "w", "MatMul", "Relu", "Tanh"));
  EXPECT_EQ(pruned.graph.node(pruned.fetches[0].node).name, "Tanh");
}

TEST_F(PruneTest, AFeedCutsAboveIt) {
  const Pruned pruned = prune(graph_, std::array{relu_}, std::array{loss_});
  EXPECT_THAT(namesOf(pruned.graph), ElementsAre("Relu/fed_0", "Tanh", "Mean"));
  ASSERT_TRUE(pruned.feeds[0].has_value());
  const Node& fed = pruned.graph.node(pruned.feeds[0]->node);
  EXPECT_EQ(fed.op, "Placeholder");
  EXPECT_EQ(fed.outputs[0], graph_.spec(relu_));
}

TEST_F(PruneTest, AFedPlaceholderKeepsItsName) {
  const Pruned pruned = prune(graph_, std::array{x_}, std::array{relu_});
  EXPECT_THAT(namesOf(pruned.graph), ElementsAre("x", "w", "MatMul", "Relu"));
}

TEST_F(PruneTest, AFeedThatNothingReadsIsDropped) {
  const Pruned pruned = prune(graph_, std::array{x_, relu_}, std::array{tanh_});
  EXPECT_THAT(namesOf(pruned.graph), ElementsAre("Relu/fed_0", "Tanh"));
  EXPECT_FALSE(pruned.feeds[0].has_value());
}

TEST_F(PruneTest, AFedTensorCanBeFetched) {
  const Pruned pruned = prune(graph_, std::array{relu_}, std::array{relu_});
  EXPECT_EQ(pruned.fetches[0], pruned.feeds[0]);
}

TEST_F(PruneTest, ControlInputsAreNeededAndAFedNodeMayStillRun) {
  const NodeId apply = b_.applyGradient(w_, b_.scale(w_, 2));
  const NodeId done = b_.node("NoOp", {}, {}, "done", {apply, relu_.node});
  const Pruned pruned = prune(graph_, std::array{relu_}, std::array{tanh_}, std::array{done});
  EXPECT_THAT(namesOf(pruned.graph), ElementsAre("x", "w", "MatMul", "Relu/fed_0", "Relu", "Tanh",
                                                 "Scale", "ApplyGradient", "done"));
  EXPECT_EQ(pruned.graph.node(pruned.targets[0]).control_inputs.size(), 2u);
}

TEST_F(PruneTest, OneOfTwoOutputsCanBeFed) {
  const Output labels = b_.placeholder("labels", DType::kUInt8, {2});
  const auto entropy = b_.sparseSoftmaxCrossEntropy(tanh_, labels);
  const Output both = b_.mulRows(entropy.loss, entropy.backprop);
  const Pruned pruned = prune(graph_, std::array{entropy.loss}, std::array{both});
  const Node& product = pruned.graph.node(pruned.fetches[0].node);
  EXPECT_EQ(pruned.graph.node(product.inputs[0].node).op, "Placeholder");
  EXPECT_EQ(product.inputs[1].index, 1);
  EXPECT_EQ(pruned.graph.node(product.inputs[1].node).op, "SparseSoftmaxCrossEntropyWithLogits");
}

TEST_F(PruneTest, TensorsAreFoundByName) {
  EXPECT_EQ(findTensor(graph_, "Tanh"), tanh_);
  EXPECT_EQ(findTensor(graph_, "Tanh:0"), tanh_);
  EXPECT_EQ(findNode(graph_, "w"), w_.node);
  EXPECT_THAT(errorText([this] { findTensor(graph_, "Tnah:0"); }),
              AllOf(HasSubstr("'Tnah'"), HasSubstr("did you mean 'Tanh'")));
  EXPECT_THAT(errorText([this] { findTensor(graph_, "Tanh:1"); }), HasSubstr("1 output"));
}

TEST(Prune, RandomGraphsComputeTheSameAfterwards) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const testing::RandomGraph whole = testing::makeRandomGraph(random, 40);
    testing::Feeds feeds = whole.feeds;
    std::vector<Output> fed;
    std::vector<Output> fetches;
    for (int i = 0; i < 3; ++i) {
      fed.push_back(whole.tensors[random.below(whole.tensors.size())]);
      fetches.push_back(whole.tensors[random.below(whole.tensors.size())]);
      feeds[fed.back()] =
          testing::Values(testing::kSide * testing::kSide, random.uniform(-1.0f, 1.0f));
    }
    const Pruned pruned = prune(whole.graph, fed, fetches);
    EXPECT_LE(pruned.graph.nodes().size(), whole.graph.nodes().size() + 3);
    testing::Feeds left;
    for (const auto& [output, values] : whole.feeds) {
      const Node* kept = pruned.graph.find(whole.graph.node(output.node).name);
      if (kept != nullptr) left[{kept->id}] = values;
    }
    for (size_t i = 0; i < fed.size(); ++i) {
      if (pruned.feeds[i]) left[*pruned.feeds[i]] = feeds.at(fed[i]);
    }
    EXPECT_EQ(evaluate(pruned.graph, left, pruned.fetches), evaluate(whole.graph, feeds, fetches));
  }
}

}  // namespace
}  // namespace dtf::graph
