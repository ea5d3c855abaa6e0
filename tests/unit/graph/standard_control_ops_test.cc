// The requirements of branches and loops on their inputs and functions.

#include <gmock/gmock.h>

#include "tests/unit/graph/control_functions.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using testing::errorText;
using testing::floatSpec;
using testing::functionOf;
using ::testing::HasSubstr;
using Outputs = std::vector<Output>;
using Parameters = std::span<const Output>;

class StandardControlOps : public ::testing::Test {
 protected:
  Output floats(Shape shape) {
    return b_.placeholder(graph_.uniqueName("x"), DType::kFloat32, std::move(shape));
  }
  std::string refusalOf(Builder::WhileArguments loop) {
    return errorText([&] { b_.whileLoop(std::move(loop)); });
  }
  // Carries x [2] over the slices of s [4, 2].
  Builder::WhileArguments loop() {
    return {.carried = {x_},
            .sequences = {s_},
            .captured = {},
            .body = functionOf(2, {2},
                               [](Builder& b, Parameters p) {
                                 return Outputs{b.add(p[0], p[1]), p[1]};
                               }),
            .cond = nullptr,
            .max_iterations = 4,
            .stacked = 1};
  }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  const Output x_ = floats({2}), s_ = floats({4, 2}), yes_ = floats({});
  const FunctionRef same_ =
      functionOf(1, {2}, [](Builder&, Parameters p) { return Outputs{p[0]}; });
};

TEST_F(StandardControlOps, TheBranchesOfAnIfAreAlike) {
  const auto other =
      functionOf(1, {2}, [](Builder& b, Parameters p) { return Outputs{b.mean(p[0])}; });
  EXPECT_THAT(errorText([&] { b_.cond(yes_, {x_}, same_, other); }),
              HasSubstr("then_branch gives float32[2] as result 0, else_branch float32[]"));
  EXPECT_THAT(
      errorText([&] { b_.cond(yes_, {s_}, same_, same_); }),
      HasSubstr("then_branch takes float32[2] as argument 0, but is called with float32[4, 2]"));
  EXPECT_THAT(errorText([&] { b_.cond(x_, {x_}, same_, same_); }),
              HasSubstr("the condition float32[2] must be a scalar"));
  EXPECT_THAT(errorText([&] { b_.cond(yes_, {x_}, same_, nullptr); }),
              HasSubstr("else_branch is no function"));
}

TEST_F(StandardControlOps, ABodyFitsWhatItIsCalledWith) {
  auto more = loop();
  more.captured = {x_};
  EXPECT_THAT(refusalOf(more), HasSubstr("the body takes 2 argument(s), but is called with 3"));
  auto fewer = loop();
  fewer.stacked = 0;
  EXPECT_THAT(
      refusalOf(fewer),
      HasSubstr("the body gives 2 result(s); it must give the 1 carried, then 0 stacked and "
                "0 summed"));
  auto grown = loop();
  grown.body = functionOf(2, {2}, [](Builder& b, Parameters p) {
    return Outputs{b.mean(p[0]), p[1]};
  });
  EXPECT_THAT(refusalOf(grown), HasSubstr("the body gives float32[] as result 0, but it "
                                          "carries float32[2]"));
  auto none = loop();
  none.body = nullptr;
  EXPECT_THAT(refusalOf(none), HasSubstr("body is no function"));
}

TEST_F(StandardControlOps, AMisfitIsToldInALineHoweverManyArgumentsThereAre) {
  const std::vector<Output> many(20'000, x_);
  const auto takes = [](size_t arguments) {
    return functionOf(arguments, {2}, [](Builder&, Parameters p) { return Outputs{p[0]}; });
  };
  const auto refusal = [&](std::vector<Output> arguments) {
    return errorText(
        [&] { b_.cond(yes_, std::move(arguments), takes(many.size()), takes(many.size())); });
  };
  std::vector<Output> other = many, fewer = many;
  other[15'000] = s_;
  fewer.pop_back();
  EXPECT_EQ(refusal(many), "");
  EXPECT_THAT(refusal(other), HasSubstr("then_branch takes float32[2] as argument 15000, but is "
                                        "called with float32[4, 2]"));
  EXPECT_THAT(refusal(fewer), HasSubstr("takes 20000 argument(s), but is called with 19999"));
  EXPECT_LT(refusal(other).size(), 200u);
}

TEST_F(StandardControlOps, ASequenceHasASliceForEachIteration) {
  auto longer = loop();
  longer.max_iterations = 5;
  EXPECT_THAT(refusalOf(longer), HasSubstr("the sequence float32[4, 2] must have 5 slices"));
}

// The bound has no default: a reader that expects unbounded loops would run one iteration.
TEST_F(StandardControlOps, ALoopNeedsABoundOfItsIterations) {
  const Builder::WhileArguments unbounded{
      .carried = {x_}, .sequences = {}, .captured = {}, .body = same_, .cond = nullptr};
  EXPECT_THAT(refusalOf(unbounded), HasSubstr("max_iterations must be from 1 to 16777216, it is 0; "
                                              "each loop needs a bound, even one with cond"));
  auto negative = unbounded;
  negative.max_iterations = -1;
  EXPECT_THAT(refusalOf(negative), HasSubstr("it is -1"));
}

TEST_F(StandardControlOps, ACondIsOneScalarOfTheStateAndWhatIsCaptured) {
  auto wide = loop();
  wide.cond = same_;
  EXPECT_THAT(refusalOf(wide), HasSubstr("the result of cond, float32[2] must be a scalar"));
  auto backwards = loop();
  backwards.cond =
      functionOf(1, {2}, [](Builder& b, Parameters p) { return Outputs{b.mean(p[0])}; });
  EXPECT_EQ(refusalOf(backwards), "");
  backwards.reverse = true;
  EXPECT_THAT(refusalOf(backwards), HasSubstr("it has no cond"));
}

TEST_F(StandardControlOps, NumbersOutOfRangeAreRefused) {
  const auto refusal = [&](const char* key, int64_t value) {
    return errorText([&] {
      b_.node("While", {x_}, {{"body", same_}, {"max_iterations", int64_t{1}}, {key, value}});
    });
  };
  EXPECT_THAT(refusal("carried", -1), HasSubstr("carried must be from 0 to 65536, it is -1"));
  EXPECT_THAT(refusal("stacked", int64_t{1} << 40), HasSubstr("stacked must be from 0 to 65536"));
  EXPECT_THAT(refusal("carried", 2), HasSubstr("takes 2 input(s) at least, got 1"));
}

}  // namespace
}  // namespace dtf::graph
