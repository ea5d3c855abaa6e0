// Gradients of reductions and of arithmetic that broadcasts, against central differences.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/unit/graph/autodiff_test.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using testing::AutodiffTest;
using ::testing::ElementsAre;
using testing::errorText;
using testing::evaluate;
using ::testing::HasSubstr;

class AutodiffMath : public AutodiffTest {
 protected:
  // Values above 0, for logarithms and roots.
  Output positive(const std::string& name, Shape shape) {
    const Output x = randomInput(name, std::move(shape));
    for (double& value : feeds_[x]) value = std::abs(value);
    return x;
  }
};

TEST_F(AutodiffMath, Quotients) {
  check(b_.div(randomInput("a", {2, 3}), randomInput("b", {2, 3})));
}
TEST_F(AutodiffMath, Powers) {
  check(b_.exp(randomInput("x", {2, 3})));
}
TEST_F(AutodiffMath, PowersOfAnyBase) {
  check(b_.pow(positive("a", {2, 3}), randomInput("b", {2, 3})));
}
// As in TensorFlow, the logarithm of a number that isn't above 0 passes no gradient.
TEST_F(AutodiffMath, APowerOfWhatIsNotAboveZeroHasNoGradientByItsExponent) {
  const Output a = b_.placeholder("a", DType::kFloat32, {4}),
               b = b_.placeholder("b", DType::kFloat32, {4});
  feeds_[a] = {0, -2, 1, -3};
  feeds_[b] = {2, 3, 4, 0.5};  // the last power is NaN
  const auto gradients = addGradients(graph_, b_.sum(b_.pow(a, b)), std::array{a, b});
  const testing::Values of_base = evaluate(graph_, feeds_, gradients[0]);
  const testing::Values of_power = evaluate(graph_, feeds_, gradients[1]);
  EXPECT_THAT(std::vector(of_base.begin(), of_base.begin() + 3), ElementsAre(0, 12, 4));
  EXPECT_THAT(std::vector(of_power.begin(), of_power.begin() + 3), ElementsAre(0, 0, 0));
  EXPECT_TRUE(std::isnan(of_base[3]) && std::isnan(of_power[3]));
}
TEST_F(AutodiffMath, Logarithms) {
  check(b_.log(positive("x", {2, 3})));
}
TEST_F(AutodiffMath, Roots) {
  check(b_.sqrt(positive("x", {2, 3})));
}
TEST_F(AutodiffMath, InverseRoots) {
  check(b_.rsqrt(positive("x", {2, 3})));
}
TEST_F(AutodiffMath, TheLargerAndTheSmallerOne) {
  const Output a = randomInput("a", {4, 5}), b = randomInput("b", {4, 5});
  check(b_.mul(b_.maximum(a, b), b_.minimum(b_.scale(a, 2), b)));
}
TEST_F(AutodiffMath, OfEqualOnesTheFirstHasTheGradient) {
  const Output a = b_.placeholder("a", DType::kFloat32, {1}),
               b = b_.placeholder("b", DType::kFloat32, {1});
  feeds_[a] = feeds_[b] = {3};
  for (const Output y : {b_.maximum(a, b), b_.minimum(a, b)}) {
    const auto gradients = addGradients(graph_, b_.mean(y), std::array{a, b});
    EXPECT_EQ(evaluate(graph_, feeds_, gradients[0]), testing::Values{1});
    EXPECT_EQ(evaluate(graph_, feeds_, gradients[1]), testing::Values{0});
  }
}

// dy is infinite at the element that was not taken.
TEST_F(AutodiffMath, OfTheOneThatWasNotTakenTheGradientIsZero) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2}), zero = b_.constant({2}, 0);
  feeds_[x] = {-1, 4};
  const auto gradients =
      addGradients(graph_, b_.scale(b_.mean(b_.sqrt(b_.maximum(x, zero))), 2), std::array{x});
  EXPECT_EQ(evaluate(graph_, feeds_, gradients[0]), (testing::Values{0, 0.25}));
}
TEST_F(AutodiffMath, AQuotientOfZeroHasNoGradientByItsDivisor) {
  const Output a = b_.placeholder("a", DType::kFloat32, {1}),
               b = b_.placeholder("b", DType::kFloat32, {1});
  feeds_[a] = {0};
  feeds_[b] = {1e-310};  // 1 / b is infinite
  const auto gradients = addGradients(graph_, b_.mean(b_.div(a, b)), std::array{b});
  EXPECT_EQ(evaluate(graph_, feeds_, gradients[0]), testing::Values{0});
}

// Each pair of shapes in both orders: a repeated operand gets the sum of its repetitions'
// gradients.
TEST_F(AutodiffMath, OperandsThatAreRepeated) {
  const std::vector<std::array<Shape, 2>> pairs = {
      {Shape{2, 3}, Shape{3}},       {Shape{2, 3}, Shape{2, 1}}, {Shape{2, 3}, Shape{}},
      {Shape{4, 1, 3}, Shape{2, 1}}, {Shape{1, 3}, Shape{2, 1}}, {Shape{3}, Shape{1, 1, 3}}};
  int number = 0;
  for (const auto& [one, other] : pairs) {
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(one.str() + " " + other.str());
      const auto scope = b_.nameScope("case_" + std::to_string(number++));
      inputs_.clear();
      const Output a = randomInput("a", swapped ? other : one);
      const Output b = randomInput("b", swapped ? one : other);
      check(b_.addN({b_.add(a, b), b_.sub(a, b), b_.mul(a, b), b_.div(a, b), b_.maximum(a, b),
                     b_.squaredDifference(a, b), b_.pow(b_.exp(a), b)}));
    }
  }
}

TEST_F(AutodiffMath, SumsAndMeansOverDimensions) {
  int number = 0;
  for (const Shape& axes :
       {Shape(), Shape{0}, Shape{2}, Shape{0, 2}, Shape{2, 1}, Shape{0, 1, 2}}) {
    for (const bool keep : {false, true}) {
      SCOPED_TRACE(axes.str() + (keep ? " kept" : ""));
      const auto scope = b_.nameScope("case_" + std::to_string(number++));
      inputs_.clear();
      const Output x = randomInput("x", {2, 3, 4});
      check(b_.mul(b_.sum(x, axes, keep), b_.mean(x, axes, keep)));
    }
  }
}

TEST_F(AutodiffMath, TheLargestAndTheSmallestOverDimensions) {
  int number = 0;
  for (const Shape& axes : {Shape(), Shape{0}, Shape{2}, Shape{0, 2}, Shape{2, 1}}) {
    for (const bool keep : {false, true}) {
      SCOPED_TRACE(axes.str() + (keep ? " kept" : ""));
      const auto scope = b_.nameScope("case_" + std::to_string(number++));
      inputs_.clear();
      const Output x = randomInput("x", {2, 3, 4});
      check(b_.mul(b_.max(x, axes, keep), b_.min(b_.scale(x, 2), axes, keep)));
    }
  }
}

TEST_F(AutodiffMath, EqualOnesShareTheGradient) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2, 4});
  feeds_[x] = {1, 5, 5, 0, 3, 3, 3, 3};
  const auto gradient = [&](Output y) {
    return evaluate(graph_, feeds_, addGradients(graph_, b_.sum(y), std::array{x})[0]);
  };
  EXPECT_THAT(gradient(b_.max(x, {1})), ElementsAre(0, 0.5, 0.5, 0, 0.25, 0.25, 0.25, 0.25));
  EXPECT_THAT(gradient(b_.min(x)), ElementsAre(0, 0, 0, 1, 0, 0, 0, 0));
}

TEST_F(AutodiffMath, Repetition) {
  check(b_.broadcastTo(randomInput("x", {3, 1}), {2, 3, 4}));
}

TEST_F(AutodiffMath, ACastToTheSameTypeOnly) {
  const Output x = randomInput("x", {3});
  check(b_.mul(b_.cast(x, DType::kFloat32), x));
  const Output whole = b_.cast(b_.cast(x, DType::kInt32), DType::kFloat32);
  EXPECT_THAT(errorText([&] { addGradients(graph_, b_.mean(whole), std::array{x}); }),
              HasSubstr("does not depend"));
}

TEST_F(AutodiffMath, Choices) {
  const Output condition = b_.placeholder("condition", DType::kUInt8, {2, 2});
  feeds_[condition] = {1, 0, 0, 2};
  check(Output{b_.node("Select", {condition, randomInput("a", {2, 2}), randomInput("b", {2, 2})})});
}

// log(-1) is NaN, and so is its gradient: neither passes through.
TEST_F(AutodiffMath, WhatWasNotChosenSpoilsNoGradient) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2});
  feeds_[x] = {-1, 2};
  const Output is_positive = b_.less(b_.constant({}, 0), x);
  const Output safe{b_.node("Select", {is_positive, x, b_.constant({2}, 1)})};
  const Output y{b_.node("Select", {is_positive, b_.log(safe), x})};
  const Output dx = addGradients(graph_, b_.sum(y), std::array{x})[0];
  EXPECT_EQ(evaluate(graph_, feeds_, dx), (testing::Values{1, 0.5}));
}

TEST_F(AutodiffMath, WhatIsStoppedIsAConstant) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  feeds_[x] = {3};
  const Output y = b_.mul(x, Output{b_.node("StopGradient", {b_.mul(x, x)})});
  const Output dx = addGradients(graph_, b_.mean(y), std::array{x})[0];
  EXPECT_EQ(evaluate(graph_, feeds_, dx), testing::Values{9}) << "27 without";
}

// In a policy's gradient, for example, the chosen action is a constant, and its probability isn't.
TEST_F(AutodiffMath, WhatWasChosenIsAConstant) {
  const Output x = randomInput("x", {4, 3});
  const Output chosen = b_.oneHot(b_.argMax(x, 1), 3);
  const Output larger = b_.cast(b_.less(x, b_.constant({}, 0.01)), DType::kFloat32);
  check(b_.addN({b_.mul(chosen, b_.log(b_.softmax(x))), b_.mul(larger, b_.mul(x, x))}));
}

// A normalisation from basic ops: its gradient passes through repeated sums, roots and quotients.
TEST_F(AutodiffMath, ANormalisationOfOnesOwn) {
  const Output x = randomInput("x", {4, 3});
  const Output centred = b_.sub(x, b_.mean(x, {0}, true));
  const Output variance = b_.mean(b_.mul(centred, centred), {0});
  check(b_.div(centred, b_.sqrt(b_.add(variance, b_.constant({}, 1e-2)))));
}

TEST_F(AutodiffMath, ASoftmaxOfOnesOwn) {
  const Output x = randomInput("x", {3, 4});
  const Output powers = b_.exp(x);
  check(b_.log(b_.div(powers, b_.sum(powers, {1}, true))));
}

}  // namespace
}  // namespace dtf::graph
