#pragma once

// Compares the gradients of a graph with central differences of it, both in double precision.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/graph/autodiff.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::graph::testing {

class AutodiffTest : public ::testing::Test {
 protected:
  // Values away from zero: differences would step over Relu's kink there.
  Output randomInput(const std::string& name, Shape shape) {
    const Output input = b_.placeholder(name, DType::kFloat32, shape);
    Values values;
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const double x = random_.uniform(0.1f, 2.0f);
      values.push_back(random_.below(2) == 0 ? x : -x);
    }
    feeds_[input] = values;
    inputs_.push_back(input);
    return input;
  }

  // Weights `y`'s elements differently, so that no errors cancel out, and takes the mean.
  Output lossOf(Output y) {
    const Shape shape = graph_.spec(y).shape;
    const Output weights = b_.placeholder("weights", DType::kFloat32, shape);
    for (int64_t i = 0; i < shape.elements(); ++i) {
      feeds_[weights].push_back(random_.uniform(-1.0f, 1.0f));
    }
    return b_.mean(b_.mul(y, weights));
  }

  void checkLoss(Output loss) {
    const std::vector<Output> gradients = addGradients(graph_, loss, inputs_);
    ASSERT_EQ(gradients.size(), inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      SCOPED_TRACE(graph_.node(inputs_[i].node).name);
      ASSERT_EQ(graph_.spec(gradients[i]), graph_.spec(inputs_[i]));
      checkElements(loss, inputs_[i], evaluate(graph_, feeds_, gradients[i]));
    }
  }

  void checkElements(Output loss, Output input, const Values& gradient) {
    constexpr double kStep = 1e-5;
    for (size_t i = 0; i < gradient.size(); ++i) {
      Feeds moved = feeds_;
      moved[input][i] += kStep;
      const double above = evaluate(graph_, moved, loss)[0];
      moved[input][i] -= 2 * kStep;
      const double below = evaluate(graph_, moved, loss)[0];
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient[i], expected, 1e-8 + 1e-7 * std::abs(expected)) << "element " << i;
    }
  }

  void check(Output y) { checkLoss(lossOf(y)); }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  Random random_{20};
  Feeds feeds_;
  std::vector<Output> inputs_;
};

}  // namespace dtf::graph::testing
