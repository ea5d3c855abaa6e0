#include "common/graph/function.h"

#include <gmock/gmock.h>

#include "tests/unit/graph/control_functions.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;
using testing::errorText;
using testing::floatSpec;
using testing::functionOf;
using ::testing::HasSubstr;
using Outputs = std::vector<Output>;
using Parameters = std::span<const Output>;

TEST(Function, SaysWhatItTakesAndGives) {
  const auto function =
      Function::build(standardOps(), std::vector{floatSpec({2, 3}), floatSpec({3, 4})},
                      [](Builder& b, Parameters p) {
                        return Outputs{b.matMul(p[0], p[1]), p[0]};
                      });
  EXPECT_THAT(function->parameterSpecs(), ElementsAre(floatSpec({2, 3}), floatSpec({3, 4})));
  EXPECT_THAT(function->resultSpecs(), ElementsAre(floatSpec({2, 4}), floatSpec({2, 3})));
}

TEST(Function, OnlyComputes) {
  EXPECT_THAT(errorText([] {
                functionOf(0, {},
                           [](Builder& b, Parameters) { return Outputs{b.variable("w", {2})}; });
              }),
              HasSubstr("holds node 'w' (Variable), but may only compute"));
}

TEST(Function, ReadsItsParametersAndNothingElse) {
  EXPECT_THAT(errorText([] {
                functionOf(0, {}, [](Builder& b, Parameters) {
                  return Outputs{b.placeholder("x", DType::kFloat32, {2})};
                });
              }),
              HasSubstr("reads the Placeholder 'x', which is none of its parameters"));
  Graph graph(standardOps());
  Builder b(graph);
  const Output x = b.placeholder("x", DType::kFloat32, {2}), y = b.tanh(x);
  EXPECT_THAT(errorText([&] {
                Function::make(graph, {x.node, y.node}, {y});
              }),
              HasSubstr("has a parameter that is no Placeholder"));
  EXPECT_THAT(errorText([&] {
                Function::make(graph, {x.node, NodeId{5}}, {y});
              }),
              HasSubstr("has a parameter that is no Placeholder"));
  EXPECT_THAT(errorText([&] {
                Function::make(graph, {x.node, x.node}, {y});
              }),
              HasSubstr("has the parameter 'x' twice"));
  EXPECT_THAT(errorText([&] {
                Function::make(graph, {x.node}, {{y.node, 1}});
              }),
              HasSubstr("has a result that no node of it makes"));
  EXPECT_THAT(errorText([&] {
                Function::make(graph, {x.node}, {{NodeId{-1}, 0}});
              }),
              HasSubstr("has a result that no node of it makes"));
}

FunctionRef looped(const FunctionRef& body, int64_t times) {
  return functionOf(1, {2}, [&](Builder& b, Parameters p) {
    return b
        .whileLoop({.carried = {p[0]},
                    .sequences = {},
                    .captured = {},
                    .body = body,
                    .cond = nullptr,
                    .max_iterations = times})
        .carried;
  });
}

FunctionRef tanhOnce() {
  return functionOf(1, {2}, [](Builder& b, Parameters p) { return Outputs{b.tanh(p[0])}; });
}

TEST(Function, CallsOthersSoDeepAndNoDeeper) {
  FunctionRef function = tanhOnce();
  for (int depth = 2; depth <= Function::kDepthMax; ++depth) function = looped(function, 1);
  EXPECT_THAT(errorText([&] { looped(function, 1); }), HasSubstr("9 deep; the most is 8"));
}

TEST(Function, KnowsHowOftenLoopsWithinLoopsMayRun) {
  EXPECT_EQ(tanhOnce()->iterations(), 0);
  const FunctionRef thousand = looped(tanhOnce(), 1000), million = looped(thousand, 1000);
  EXPECT_EQ(million->iterations(), 1'000'000);
  EXPECT_THAT(errorText([&] { looped(million, 1000); }),
              HasSubstr("max_iterations must be from 1 to 16, it is 1000"));
}

// Two loops in a row, with the given numbers of iterations.
FunctionRef loopedTwice(const FunctionRef& body, int64_t first, int64_t second) {
  return functionOf(1, {2}, [&](Builder& b, Parameters p) {
    Builder::WhileArguments loop{.carried = {p[0]},
                                 .sequences = {},
                                 .captured = {},
                                 .body = body,
                                 .cond = nullptr,
                                 .max_iterations = first};
    loop.carried = b.whileLoop(loop).carried;
    loop.max_iterations = second;
    return b.whileLoop(loop).carried;
  });
}

TEST(Function, AddsLoopsSideBySide) {
  const FunctionRef two = loopedTwice(tanhOnce(), 1000, 24);
  EXPECT_EQ(two->iterations(), 1024);
  EXPECT_EQ(loopedTwice(two, 3, 2)->iterations(), 5 * 1024);
  constexpr int64_t kMost = Function::kIterationsMax;
  EXPECT_EQ(loopedTwice(tanhOnce(), kMost - 1, 1)->iterations(), kMost);
  EXPECT_THAT(errorText([&] { loopedTwice(tanhOnce(), kMost, 1); }),
              HasSubstr("has loops of more than 16777216 iterations together"));
}

// Eight levels of ten calls each would be 10^8 copies of one node.
TEST(Function, ThatIsSharedCountsOnceForEachCaller) {
  const auto calls = [](const FunctionRef& function, int times) {
    return functionOf(1, {2}, [&](Builder& b, Parameters p) {
      Outputs state = {p[0]};
      for (int i = 0; i < times; ++i)
        state = b.cond(b.constant({}, 1), {state[0]}, function, function);
      return state;
    });
  };
  const FunctionRef twice = calls(tanhOnce(), 2);
  EXPECT_EQ(twice->nodes(), 5u + 2 * 2 * tanhOnce()->nodes());
  EXPECT_EQ(calls(twice, 1)->nodes(), 3u + 2 * twice->nodes());
  FunctionRef function = tanhOnce();
  const std::string refusal = errorText([&] {
    for (int depth = 2; depth <= Function::kDepthMax; ++depth) function = calls(function, 10);
  });
  EXPECT_THAT(refusal, HasSubstr("nodes, with every call of a function counted; the "
                                 "most is 100000"));
  EXPECT_LE(function->nodes(), Function::kNodesMax);
}

TEST(Function, TakesOneBranchOfAnIfAndBothFunctionsOfALoop) {
  const FunctionRef ten = looped(tanhOnce(), 10), seven = looped(tanhOnce(), 7);
  const auto either = functionOf(
      1, {2}, [&](Builder& b, Parameters p) { return b.cond(b.mean(p[0]), {p[0]}, ten, seven); });
  EXPECT_EQ(either->iterations(), 10);
  const auto both = functionOf(1, {2}, [&](Builder& b, Parameters p) {
    const auto cond = functionOf(1, {2}, [&](Builder& c, Parameters q) {
      return Outputs{c.mean(c.cond(c.mean(q[0]), {q[0]}, seven, seven)[0])};
    });
    return b
        .whileLoop({.carried = {p[0]},
                    .sequences = {},
                    .captured = {},
                    .body = ten,
                    .cond = cond,
                    .max_iterations = 2})
        .carried;
  });
  EXPECT_EQ(both->iterations(), 2 * (10 + 7));
}

}  // namespace
}  // namespace dtf::graph
