// The gradients of branches and loops.

#include <gmock/gmock.h>

#include "common/graph/function.h"
#include "tests/unit/graph/autodiff_test.h"
#include "tests/unit/graph/control_functions.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using testing::AutodiffTest;
using testing::errorText;
using testing::floatSpec;
using ::testing::HasSubstr;
using Outputs = std::vector<Output>;
using Parameters = std::span<const Output>;

TEST_F(AutodiffTest, Transpose) {
  check(b_.transpose(randomInput("x", {2, 3, 4}), {2, 0, 1}));
}

class ControlGradients : public AutodiffTest {
 protected:
  FunctionRef function(std::vector<TensorSpec> parameters, const Function::Build& build) {
    return Function::build(standardOps(), parameters, build);
  }
};

TEST_F(ControlGradients, OfTheBranchThatRuns) {
  for (const double condition : {0.0, 1.0}) {
    const auto scope = b_.nameScope("c" + std::to_string(static_cast<int>(condition)));
    const TensorSpec spec = floatSpec({3});
    inputs_.clear();
    const Output a = randomInput("a", {3}), c = randomInput("b", {3});
    const Output chosen = b_.placeholder("condition", DType::kUInt8, {});
    feeds_[chosen] = {condition};
    const auto results = b_.cond(chosen, {a, c},
                                 function({spec, spec},
                                          [](Builder& b, Parameters x) {
                                            return Outputs{b.mul(x[0], x[1]), x[0]};
                                          }),
                                 function({spec, spec}, [](Builder& b, Parameters x) {
                                   return Outputs{b.tanh(x[1]), b.sub(x[0], x[1])};
                                 }));
    check(b_.concat({b_.scale(results[0], 2), results[1]}, 0));
  }
}

// h = tanh(x_t + h * w), stacked and carried; and a sum of terms that no iteration carries.
TEST_F(ControlGradients, OfALoopOverASequence) {
  for (const bool reverse : {false, true}) {
    const auto scope = b_.nameScope(reverse ? "backward" : "forward");
    inputs_.clear();
    const Output x = randomInput("x", {5, 2, 3}), h = randomInput("h", {2, 3}),
                 w = randomInput("w", {3, 3});
    const auto body = function({floatSpec({2, 3}), floatSpec({2, 3}), floatSpec({3, 3})},
                               [](Builder& b, Parameters p) {
                                 const Output next = b.tanh(b.add(p[1], b.matMul(p[0], p[2])));
                                 return Outputs{next, b.scale(next, 2), b.mul(p[0], p[1])};
                               });
    const auto loop = b_.whileLoop({.carried = {h},
                                    .sequences = {x},
                                    .captured = {w},
                                    .body = body,
                                    .cond = nullptr,
                                    .max_iterations = 5,
                                    .stacked = 1,
                                    .summed = 1,
                                    .reverse = reverse,
                                    .keep_carried = true});
    check(b_.concat({b_.reshape(loop.stacked[0], {30}), b_.reshape(loop.carried[0], {6}),
                     b_.reshape(loop.summed[0], {6})},
                    0));
  }
}

// Doubles x until it exceeds a bound: the number of iterations follows from the values.
TEST_F(ControlGradients, OfALoopThatEndsByItself) {
  const Output x = b_.placeholder("x", DType::kFloat32, {});
  const Output bound = b_.placeholder("bound", DType::kFloat32, {});
  feeds_[x] = {0.7};
  feeds_[bound] = {10};
  inputs_ = {x};
  const auto less = function({floatSpec({}), floatSpec({})},
                             [](Builder& b, Parameters p) { return Outputs{b.less(p[0], p[1])}; });
  const auto body = function({floatSpec({}), floatSpec({})}, [](Builder& b, Parameters p) {
    return Outputs{b.mul(b.scale(p[0], 1.5), p[0]), b.tanh(p[0])};
  });
  feeds_[x] = {1.1};
  const auto loop = b_.whileLoop({.carried = {x},
                                  .sequences = {},
                                  .captured = {bound},
                                  .body = body,
                                  .cond = less,
                                  .max_iterations = 9,
                                  .stacked = 1,
                                  .keep_carried = true});
  EXPECT_EQ(testing::evaluate(graph_, feeds_, loop.iterations), (testing::Values{3}));
  check(b_.concat({b_.reshape(loop.carried[0], {1}), loop.stacked[0]}, 0));
}

TEST_F(ControlGradients, OfABranchWithinALoopWithinALoop) {
  const Output x = randomInput("x", {2}), w = randomInput("w", {2});
  const auto twice = [](double factor) {
    return Function::build(standardOps(), std::vector{floatSpec({2}), floatSpec({2})},
                           [factor](Builder& b, Parameters p) {
                             return Outputs{b.mul(b.scale(p[0], factor), b.tanh(p[1]))};
                           });
  };
  const auto inner = function({floatSpec({2}), floatSpec({2})}, [&](Builder& b, Parameters p) {
    const Output small = b.less(b.mean(p[0]), b.constant({}, 0.1));
    return b.cond(small, {p[0], p[1]}, twice(3), twice(0.5));
  });
  const auto outer = function({floatSpec({2}), floatSpec({2})}, [&](Builder& b, Parameters p) {
    return b
        .whileLoop({.carried = {p[0]},
                    .sequences = {},
                    .captured = {p[1]},
                    .body = inner,
                    .cond = nullptr,
                    .max_iterations = 3,
                    .keep_carried = true})
        .carried;
  });
  const auto loop = b_.whileLoop({.carried = {x},
                                  .sequences = {},
                                  .captured = {w},
                                  .body = outer,
                                  .cond = nullptr,
                                  .max_iterations = 2,
                                  .keep_carried = true});
  check(loop.carried[0]);
}

TEST_F(ControlGradients, StateThatIsNoFloatHasNone) {
  const Output x = randomInput("x", {2});
  const Output n = b_.placeholder("n", DType::kInt32, {});
  feeds_[n] = {7};
  const auto body =
      function({TensorSpec{DType::kInt32, Shape()}, floatSpec({2})}, [](Builder& b, Parameters p) {
        return Outputs{p[0], b.scale(b.tanh(p[1]), 3)};
      });
  const auto loop = b_.whileLoop({.carried = {n, x},
                                  .sequences = {},
                                  .captured = {},
                                  .body = body,
                                  .cond = nullptr,
                                  .max_iterations = 2,
                                  .keep_carried = true});
  check(loop.carried[1]);
}

TEST_F(ControlGradients, ALoopThatKeepsNothingHasNone) {
  const Output x = randomInput("x", {2});
  const auto body =
      function({floatSpec({2})}, [](Builder& b, Parameters p) { return Outputs{b.tanh(p[0])}; });
  const auto loop = b_.whileLoop({.carried = {x},
                                  .sequences = {},
                                  .captured = {},
                                  .body = body,
                                  .cond = nullptr,
                                  .max_iterations = 1});
  EXPECT_THAT(errorText([&] { addGradients(graph_, lossOf(loop.carried[0]), inputs_); }),
              HasSubstr("set keep_carried"));
}

TEST_F(ControlGradients, OfTheGradientOfALoopThereIsNone) {
  const Output x = randomInput("x", {2});
  const auto body = function({floatSpec({2})},
                             [](Builder& b, Parameters p) { return Outputs{b.mul(p[0], p[0])}; });
  const auto loop = b_.whileLoop({.carried = {x},
                                  .sequences = {},
                                  .captured = {},
                                  .body = body,
                                  .cond = nullptr,
                                  .max_iterations = 2,
                                  .keep_carried = true});
  const Output slope = addGradients(graph_, lossOf(loop.carried[0]), inputs_)[0];
  EXPECT_THAT(errorText([&] { addGradients(graph_, b_.mean(slope), inputs_); }),
              HasSubstr("there are no second derivatives through a loop"));
}

// The error has the names of the calling node and of the node in the function.
TEST_F(ControlGradients, MistakesInAFunctionNameBoth) {
  const Output x = randomInput("x", {2});
  const auto blocked = function({floatSpec({2})}, [](Builder& b, Parameters p) {
    return Outputs{{b.node("ReluGrad", {p[0], p[0]}, {}, "wall")}};
  });
  const auto refusal = [&](const char* op, std::vector<Output> inputs, Attributes attributes) {
    const NodeId made = b_.node(op, std::move(inputs), std::move(attributes), "caller");
    return errorText([&] { addGradients(graph_, lossOf({made}), std::array{x}); });
  };
  const auto scope = b_.nameScope("branches");
  EXPECT_THAT(
      refusal("If", {b_.constant({}, 1), x}, {{"then_branch", blocked}, {"else_branch", blocked}}),
      HasSubstr("node 'branches/caller' (If): its gradient through then_branch: 'wall' "
                "(ReluGrad, float32[2]) can't be differentiated"));
  const auto other = b_.nameScope("loops");
  EXPECT_THAT(refusal("While", {x},
                      {{"body", blocked},
                       {"max_iterations", int64_t{2}},
                       {"carried", int64_t{1}},
                       {"keep_carried", true}}),
              HasSubstr("loops/caller' (While): its gradient through the body: 'wall'"));
}

}  // namespace
}  // namespace dtf::graph
