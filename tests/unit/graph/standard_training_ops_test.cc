// Shapes and errors of the ops of training programs, and of variables that count.

#include "common/graph/standard_ops.h"
#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::errorText;
using ::testing::HasSubstr;

class StandardTrainingOps : public testing::OpTest {
 protected:
  Output counter(const std::string& name) {
    return {b_.node(
        "Variable", {},
        {{"shape", Shape()}, {"dtype", DType::kInt64}, {"initializer", std::string("zeros")}},
        name)};
  }
  std::string refusal(const char* op, const std::vector<Output>& inputs,
                      const Attributes& attributes) {
    return errorText([&] { b_.node(op, inputs, attributes); });
  }
  const Attributes adam_{{"optimizer", std::string("adam")}};
};

TEST_F(StandardTrainingOps, AnUpdateTakesTheVariableItsSlotsAGradientAndTheStep) {
  const Output w = b_.variable("w", {4, 2}), m = b_.variable("m", {4, 2});
  const Output gradient = b_.constant({4, 2}, 1), step = b_.constant({}, 3, DType::kInt64);
  const Node& node = graph_.node(b_.node("ApplyOptimizer", {w, m, gradient, step}, adam_));
  EXPECT_TRUE(node.outputs.empty());
  EXPECT_TRUE(actsOnVariable(node));
  EXPECT_THAT(variablesOf(node), ElementsAre(w, m));
  EXPECT_THAT(refusal("ApplyOptimizer", {w, m, b_.constant({2}, 1), step}, adam_),
              AllOf(HasSubstr("gradient"), HasSubstr("[2]"), HasSubstr("[4, 2]")));
  EXPECT_THAT(refusal("ApplyOptimizer", {w, b_.constant({2}, 1), gradient, step}, adam_),
              HasSubstr("slot 0"));
  EXPECT_THAT(refusal("ApplyOptimizer", {w, gradient, gradient}, adam_),
              HasSubstr("step float32[4, 2] must be int64[]"));
  EXPECT_THAT(refusal("ApplyOptimizer", {gradient, step}, adam_), HasSubstr("at least 3 inputs"));
}

TEST_F(StandardTrainingOps, ASparseUpdateTakesTheIndicesOfTheRows) {
  const Output table = b_.variable("t", {10, 2});
  const Output ids = b_.constant({5}, 1, DType::kInt32), step = b_.constant({}, 3, DType::kInt64);
  const Node& node = graph_.node(
      b_.node("ApplySparseOptimizer", {table, b_.constant({5, 2}, 1), ids, step}, adam_));
  EXPECT_THAT(variablesOf(node), ElementsAre(table));
  EXPECT_THAT(refusal("ApplySparseOptimizer", {table, b_.constant({4, 2}, 1), ids, step}, adam_),
              HasSubstr("the gathered rows"));
}

TEST_F(StandardTrainingOps, ClippingReturnsEachGradientAndTheNorm) {
  const Output a = b_.constant({3}, 1), rows = b_.constant({5, 2}, 1);
  const Output ids = b_.constant({5}, 1, DType::kInt32);
  const auto clip = [](const char* sparse, double norm = 1) {
    return Attributes{{"clip_norm", norm}, {"sparse", std::string(sparse)}};
  };
  const Node& node = graph_.node(b_.node("ClipByGlobalNorm", {a, rows, ids, a}, clip("1")));
  ASSERT_EQ(node.outputs.size(), 4u);
  EXPECT_EQ(node.outputs[1], (TensorSpec{DType::kFloat32, {5, 2}}));
  EXPECT_EQ(node.outputs[3], (TensorSpec{DType::kFloat32, {}}));
  EXPECT_EQ(sparseGradients({{"sparse", std::string("0, 12")}}), (std::vector<size_t>{0, 12}));
  EXPECT_THAT(refusal("ClipByGlobalNorm", {a, rows}, clip("1")), HasSubstr("has no indices"));
  EXPECT_THAT(refusal("ClipByGlobalNorm", {a}, clip("1")), HasSubstr("1 is none of the 1"));
  EXPECT_THAT(refusal("ClipByGlobalNorm", {a, rows, ids}, clip("0")), HasSubstr("have a row for"));
  EXPECT_THAT(refusal("ClipByGlobalNorm", {a}, clip("x")), HasSubstr("'x'"));
  EXPECT_THAT(refusal("ClipByGlobalNorm", {a}, clip("", 0)), HasSubstr("above 0"));
}

TEST_F(StandardTrainingOps, InitialValuesAreOfAVariable) {
  const Output w = b_.variable("w", {2}), seed = b_.constant({}, 3, DType::kInt64);
  const auto like = [](const char* initializer, int64_t stream) {
    return Attributes{{"initializer", std::string(initializer)}, {"stream", stream}};
  };
  EXPECT_TRUE(
      actsOnVariable(graph_.node(b_.node("InitializeVariable", {w, seed}, like("he_normal", 3)))));
  EXPECT_EQ(graph_.spec({b_.node("IsVariableInitialized", {w})}), (TensorSpec{DType::kUInt8, {}}));
  EXPECT_THAT(refusal("InitializeVariable", {w, seed}, like("he_norml", 3)),
              HasSubstr("did you mean 'he_normal'?"));
  EXPECT_THAT(refusal("InitializeVariable", {w, seed}, like("zeros", -1)), HasSubstr("stream"));
  EXPECT_THAT(refusal("InitializeVariable", {w, w}, like("zeros", 0)),
              HasSubstr("seed float32[2] must be int64[]"));
}

TEST_F(StandardTrainingOps, ACounterIsAScalarThatStartsAtZero) {
  const Output count = counter("count");
  const Output one = b_.constant({}, 1, DType::kInt64);
  EXPECT_EQ(graph_.spec({b_.node("AssignAdd", {count, one})}), (TensorSpec{DType::kInt64, {}}));
  EXPECT_EQ(graph_.spec({b_.node("ReadVariable", {count})}), (TensorSpec{DType::kInt64, {}}));
  EXPECT_THAT(refusal("AssignAdd", {count, b_.constant({}, 1)}, {}), HasSubstr("int64[]"));
  EXPECT_THAT(
      refusal(
          "Variable", {},
          {{"shape", Shape{2}}, {"dtype", DType::kInt64}, {"initializer", std::string("zeros")}}),
      HasSubstr("this is int64[2]"));
  EXPECT_THAT(
      refusal("Variable", {},
              {{"shape", Shape()}, {"dtype", DType::kInt64}, {"initializer", std::string("ones")}}),
      HasSubstr("is zeros, not ones"));
  EXPECT_EQ(variablePlace(graph_, counter("other").node), 1);
}

}  // namespace
}  // namespace dtf::graph
