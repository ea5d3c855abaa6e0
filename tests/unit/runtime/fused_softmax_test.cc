// Against the formulas in double precision, over shapes with every kind of remainder, on every
// instruction set of this machine.

#include "common/runtime/fused_softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "common/base/random.h"
#include "common/runtime/processor.h"
#include "common/tensor/buffer.h"
#include "tests/unit/runtime/guarded_memory.h"

namespace dtf::runtime {
namespace {

struct Shapes {
  int64_t batch, inputs, classes;
};

// Inputs and results of one step. Guards of one float behind each result must keep their value.
struct Problem {
  Problem(Random& random, Shapes shapes, bool use_bytes)
      : s(shapes),
        bytes(static_cast<size_t>(s.batch * s.inputs)),
        floats(bytes.size()),
        weights(static_cast<size_t>(s.inputs * s.classes)),
        bias(static_cast<size_t>(s.classes)),
        labels(static_cast<size_t>(s.batch)),
        logits_gradient(static_cast<size_t>(s.batch * s.classes) + 1, kGuard),
        weights_gradient(weights.size() + 1, kGuard),
        bias_gradient(bias.size() + 1, kGuard),
        workspace(fusedSoftmaxWorkspaceBytes(s.batch, s.inputs, s.classes)) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<uint8_t>(random.below(256));
      floats[i] = use_bytes ? 0.0f : random.uniform(-1, 1);
    }
    for (float& w : weights) w = random.uniform(-0.3f, 0.3f);
    for (float& b : bias) b = random.uniform(-1, 1);
    for (int32_t& label : labels) label = static_cast<int32_t>(random.below(shapes.classes));
    // Garbage from a former step must not matter.
    std::memset(workspace.data(), 0x7f, workspace.bytes());
    step.bytes = use_bytes ? bytes.data() : nullptr;
    step.floats = use_bytes ? nullptr : floats.data();
    step.scale = use_bytes ? 1.0f / 255 : 1.0f;
    step.weights = weights.data();
    step.bias = bias.data();
    step.labels = labels.data();
    step.batch = s.batch, step.inputs = s.inputs, step.classes = s.classes;
    step.gradient_scale = 1.0f / static_cast<float>(s.batch);
    step.loss = &loss;
    step.accuracy = &accuracy;
    step.logits_gradient = logits_gradient.data();
    step.weights_gradient = weights_gradient.data();
    step.bias_gradient = bias_gradient.data();
    step.workspace = workspace.as<float>();
  }

  double x(int64_t row, int64_t k) const {
    const auto at = static_cast<size_t>(row * s.inputs + k);
    return step.bytes ? bytes[at] / 255.0 : floats[at];
  }

  static constexpr float kGuard = 1e30f;
  Shapes s;
  std::vector<uint8_t> bytes;
  std::vector<float> floats, weights, bias;
  std::vector<int32_t> labels;
  std::vector<float> logits_gradient, weights_gradient, bias_gradient;
  Buffer workspace;
  float loss = 0, accuracy = 0;
  FusedSoftmaxStep step;
};

void expectRight(const Problem& p) {
  const auto [batch, inputs, classes] = p.s;
  double loss = 0, hits = 0;
  std::vector<double> dw(p.weights.size()), db(p.bias.size());
  for (int64_t row = 0; row < batch; ++row) {
    std::vector<double> z(p.bias.begin(), p.bias.end());
    for (int64_t k = 0; k < inputs; ++k) {
      for (int64_t c = 0; c < classes; ++c) z[c] += p.x(row, k) * p.weights[k * classes + c];
    }
    const auto best = std::max_element(z.begin(), z.end());
    double total = 0;
    for (const double v : z) total += std::exp(v - *best);
    const int32_t label = p.labels[row];
    loss += std::log(total) + *best - z[label];
    hits += best - z.begin() == label;
    const double max = *best;
    for (int64_t c = 0; c < classes; ++c) {
      const double d = (std::exp(z[c] - max) / total - (c == label)) / static_cast<double>(batch);
      ASSERT_NEAR(p.logits_gradient[row * classes + c], d, 2e-6 / static_cast<double>(batch));
      db[c] += d;
      for (int64_t k = 0; k < inputs; ++k) dw[k * classes + c] += d * p.x(row, k);
    }
  }
  ASSERT_NEAR(p.loss, loss / static_cast<double>(batch), 1e-5);
  ASSERT_NEAR(p.accuracy, hits / static_cast<double>(batch), 1e-6);
  for (size_t i = 0; i < db.size(); ++i) ASSERT_NEAR(p.bias_gradient[i], db[i], 2e-6);
  for (size_t i = 0; i < dw.size(); ++i) ASSERT_NEAR(p.weights_gradient[i], dw[i], 2e-6) << i;
  EXPECT_EQ(p.logits_gradient.back(), Problem::kGuard);
  EXPECT_EQ(p.weights_gradient.back(), Problem::kGuard);
  EXPECT_EQ(p.bias_gradient.back(), Problem::kGuard);
}

class FusedSoftmax : public ::testing::TestWithParam<Isa> {};

TEST_P(FusedSoftmax, EqualsTheFormulas) {
  Random random(7);
  for (const int64_t classes : {1, 2, 3, 7, 8, 9, 10, 11, 13, 16}) {
    for (const auto& [batch, inputs] : {std::pair{1, 1}, {3, 17}, {17, 100}, {16, 32}, {5, 49}}) {
      for (const bool use_bytes : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "batch " << batch << ", inputs " << inputs
                                          << ", classes " << classes << ", bytes " << use_bytes);
        Problem problem(random, {batch, inputs, classes}, use_bytes);
        fusedSoftmax(GetParam(), problem.step);
        ASSERT_NO_FATAL_FAILURE(expectRight(problem));
      }
    }
  }
}

TEST_P(FusedSoftmax, ComputesTheMnistShape) {
  Random random(8);
  Problem problem(random, {100, 784, 10}, true);
  fusedSoftmax(GetParam(), problem.step);
  expectRight(problem);
}

TEST_P(FusedSoftmax, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const Shapes shapes : {Shapes{100, 784, 10}, {33, 49, 13}, {3, 100, 1}, {1, 7, 2}}) {
    Random one(12);
    Problem alone(one, shapes, true);
    fusedSoftmax(GetParam(), alone.step);
    for (const int threads : {2, 3, 8}) {
      ComputePool pool(threads);
      Processor cpu(GetParam(), &pool);
      cpu.part_work = 1;  // as many parts as possible
      Random other(12);
      Problem together(other, shapes, true);
      fusedSoftmax(cpu, together.step);
      EXPECT_EQ(together.loss, alone.loss);
      EXPECT_EQ(together.accuracy, alone.accuracy);
      EXPECT_EQ(together.logits_gradient, alone.logits_gradient);
      EXPECT_EQ(together.weights_gradient, alone.weights_gradient) << threads;
      EXPECT_EQ(together.bias_gradient, alone.bias_gradient);
    }
  }
}

TEST_P(FusedSoftmax, WritesOnlyTheResultsThatAreWanted) {
  Random random(9);
  Problem problem(random, {17, 33, 10}, true);
  FusedSoftmaxStep step = problem.step;
  step.accuracy = step.logits_gradient = step.weights_gradient = step.bias_gradient = nullptr;
  fusedSoftmax(GetParam(), step);
  EXPECT_GT(problem.loss, 0);
  EXPECT_EQ(problem.weights_gradient[0], Problem::kGuard);
}

TEST_P(FusedSoftmax, TouchesNothingPastItsArrays) {
  using testing::Guarded;
  Random random(13);
  for (const int64_t classes : {1, 3, 10, 11, 16}) {
    for (const auto& [batch, inputs] : {std::pair{1, 1}, {3, 17}, {2, 32}, {5, 47}}) {
      for (const bool use_bytes : {false, true}) {
        Problem problem(random, {batch, inputs, classes}, use_bytes);
        Guarded<uint8_t> bytes(problem.bytes);
        Guarded<float> floats(problem.floats), weights(problem.weights), bias(problem.bias);
        Guarded<int32_t> labels(problem.labels);
        Guarded<float> weights_gradient(problem.weights.size()), bias_gradient(problem.bias.size());
        Guarded<float> logits_gradient(static_cast<size_t>(batch * classes));
        Guarded<float> workspace(problem.workspace.bytes() / sizeof(float));
        problem.step.bytes = use_bytes ? bytes.data() : nullptr;
        problem.step.floats = use_bytes ? nullptr : floats.data();
        problem.step.weights = weights.data();
        problem.step.bias = bias.data();
        problem.step.labels = labels.data();
        problem.step.logits_gradient = logits_gradient.data();
        problem.step.weights_gradient = weights_gradient.data();
        problem.step.bias_gradient = bias_gradient.data();
        problem.step.workspace = workspace.data();
        fusedSoftmax(GetParam(), problem.step);
        EXPECT_GE(problem.loss, 0);
      }
    }
  }
}

TEST_P(FusedSoftmax, CountsTheFirstOfTiedLogits) {
  Random random(10);
  Problem problem(random, {2, 3, 4}, false);
  std::fill(problem.weights.begin(), problem.weights.end(), 0.0f);
  std::fill(problem.bias.begin(), problem.bias.end(), 0.0f);
  problem.labels = {0, 1};
  problem.step.labels = problem.labels.data();
  fusedSoftmax(GetParam(), problem.step);
  EXPECT_EQ(problem.accuracy, 0.5f);
}

TEST_P(FusedSoftmax, LetsNanThrough) {
  Random random(11);
  Problem problem(random, {5, 20, 10}, false);
  problem.floats[20] = NAN;
  fusedSoftmax(GetParam(), problem.step);
  EXPECT_TRUE(std::isnan(problem.loss));
  EXPECT_TRUE(std::isnan(problem.bias_gradient[0]));
}

TEST_P(FusedSoftmax, HasTheSameBitsOnEverySetWithFusedMultiplyAdd) {
  if (GetParam() == Isa::kBaseline) GTEST_SKIP() << "the baseline rounds twice";
  for (const Shapes shapes : {Shapes{100, 784, 10}, {17, 49, 13}, {3, 100, 1}}) {
    Random one(12), other(12);
    Problem a(one, shapes, true), b(other, shapes, true);
    fusedSoftmax(Isa::kV3, a.step);
    fusedSoftmax(GetParam(), b.step);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.weights_gradient, b.weights_gradient);
    EXPECT_EQ(a.bias_gradient, b.bias_gradient);
    EXPECT_EQ(a.logits_gradient, b.logits_gradient);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, FusedSoftmax,
                         ::testing::ValuesIn(supportedIsas().begin(), supportedIsas().end()),
                         [](const auto& tested) {
                           return "isa" + std::to_string(static_cast<int>(tested.param));
                         });

}  // namespace
}  // namespace dtf::runtime
