// The loops give the same bits on every instruction set, and write nothing past the end. The device
// suite tests the results.

#include "common/runtime/vector_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "tests/unit/runtime/guarded_memory.h"

namespace dtf::runtime {
namespace {

using Floats = std::vector<float>;

// All results of all loops for n = rows * columns elements.
Floats results(const VectorLoops& loops, int64_t rows, int64_t columns) {
  const int64_t n = rows * columns;
  Random random(static_cast<uint64_t>(n));
  Floats a, b, t, all;
  std::vector<uint8_t> bytes;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    a.push_back(random.uniform(-9, 9));
    b.push_back(random.uniform(-9, 9));
    t.push_back(random.uniform());
    bytes.push_back(static_cast<uint8_t>(random.below(256)));
  }
  for (int64_t i = 0; i < rows; ++i) {
    labels.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(columns))));
  }
  const float guard = 123;
  const auto run = [&](int64_t count, const std::function<void(float*)>& loop) {
    Floats y(static_cast<size_t>(count) + 1, guard);
    loop(y.data());
    EXPECT_EQ(y.back(), guard);
    all.insert(all.end(), y.begin(), y.end());
  };
  for (const auto loop : {loops.relu, loops.sigmoid, loops.tanh, loops.relu6, loops.elu, loops.gelu,
                          loops.geluApproximate, loops.silu, loops.softplus, loops.abs}) {
    run(n, [&](float* y) { loop(a.data(), y, n); });
  }
  for (const auto loop :
       {loops.add, loops.sub, loops.mul, loops.squaredDifference, loops.reluGrad, loops.sigmoidGrad,
        loops.tanhGrad, loops.sigmoidCrossEntropy, loops.relu6Grad, loops.eluGrad, loops.geluGrad,
        loops.geluApproximateGrad, loops.siluGrad, loops.softplusGrad, loops.absGrad}) {
    run(n, [&](float* y) { loop(a.data(), t.data(), y, n); });
  }
  for (const auto loop : {loops.leakyRelu, loops.huber}) {
    run(n, [&](float* y) { loop(a.data(), 0.7f, y, n); });
  }
  for (const auto loop : {loops.leakyReluGrad, loops.huberGrad}) {
    run(n, [&](float* y) { loop(b.data(), a.data(), 0.7f, y, n); });
  }
  run(n, [&](float* y) { loops.sigmoidCrossEntropyGrad(b.data(), a.data(), t.data(), y, n); });
  run(n, [&](float* y) { loops.normalise(bytes.data(), 1.0f / 255, y, n); });
  run(n, [&](float* y) { loops.scale(a.data(), 0.3f, y, n); });
  run(n, [&](float* y) { loops.dropout(a.data(), {{7, 8}, {9, 10, 11}, 0x60000000, 1.6f}, y, n); });
  run(n, [&](float* y) { loops.biasAdd(a.data(), b.data(), y, rows, columns); });
  run(columns, [&](float* y) { loops.biasAddGrad(a.data(), columns, y, rows, columns); });
  run(n, [&](float* y) { loops.mulRows(b.data(), a.data(), y, rows, columns); });
  run(n, [&](float* y) { loops.softmax(a.data(), y, rows, columns); });
  run(n, [&](float* y) { loops.softmaxGrad(a.data(), t.data(), y, rows, columns); });
  Floats loss(static_cast<size_t>(rows));
  run(n, [&](float* y) {
    loops.softmaxCrossEntropy(a.data(), labels.data(), loss.data(), y, rows, columns);
  });
  run(n, [&](float* y) {
    loops.targetsCrossEntropy(a.data(), t.data(), loss.data(), y, rows, columns);
  });
  all.insert(all.end(), loss.begin(), loss.end());
  all.push_back(static_cast<float>(loops.sum(a.data(), n)));
  return all;
}

TEST(VectorLoops, HaveTheSameBitsOnEveryInstructionSet) {
  for (const Isa isa : supportedIsas()) {
    for (const int64_t rows : {1, 3, 17}) {
      for (const int64_t columns : {1, 7, 16, 33, 100}) {
        SCOPED_TRACE(::testing::Message() << isaName(isa) << " " << rows << " x " << columns);
        EXPECT_EQ(results(vectorLoops(isa), rows, columns),
                  results(vectorLoops(Isa::kBaseline), rows, columns));
      }
    }
  }
}

TEST(VectorLoops, TouchNothingPastTheirArrays) {
  for (const Isa isa : supportedIsas()) {
    const VectorLoops& loops = vectorLoops(isa);
    for (const int64_t n : {1, 5, 16, 31}) {
      testing::Guarded<float> a(static_cast<size_t>(n)), b(static_cast<size_t>(n));
      testing::Guarded<float> y(static_cast<size_t>(n));
      testing::Guarded<uint8_t> bytes(static_cast<size_t>(n));
      std::fill_n(a.data(), n, 1.0f);
      std::fill_n(b.data(), n, 0.5f);
      loops.tanh(a.data(), y.data(), n);
      loops.add(a.data(), b.data(), y.data(), n);
      loops.normalise(bytes.data(), 1, y.data(), n);
      loops.biasAddGrad(a.data(), n, y.data(), 1, n);
      loops.dropout(a.data(), {}, y.data(), n);
      EXPECT_EQ(y.data()[n - 1], 1) << "a threshold of 0 keeps all";
      loops.softmax(a.data(), y.data(), 1, n);
      EXPECT_NEAR(y.data()[n - 1], 1.0 / static_cast<double>(n), 1e-6);
      EXPECT_EQ(loops.sum(a.data(), n), static_cast<double>(n));
    }
  }
}

TEST(VectorLoops, MayWriteOverTheirInput) {
  for (const Isa isa : supportedIsas()) {
    const VectorLoops& loops = vectorLoops(isa);
    Floats x(37), y(37);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 7 - 2;
    loops.tanh(x.data(), y.data(), 37);
    loops.tanh(x.data(), x.data(), 37);
    EXPECT_EQ(x, y);
  }
}

TEST(VectorLoops, StayFiniteAtTheEnds) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Isa isa : supportedIsas()) {
    const Floats x = {-inf, -1000, -88, 88, 1000, inf};
    Floats y(x.size());
    vectorLoops(isa).sigmoid(x.data(), y.data(), 6);
    EXPECT_NEAR(y[1], 0, 1e-30);
    EXPECT_EQ(y[4], 1);
    vectorLoops(isa).tanh(x.data(), y.data(), 6);
    EXPECT_EQ(y[0], -1);
    EXPECT_EQ(y[5], 1);
  }
}

TEST(VectorLoops, LetNanThrough) {
  for (const Isa isa : supportedIsas()) {
    const VectorLoops& loops = vectorLoops(isa);
    for (const auto loop :
         {loops.relu, loops.sigmoid, loops.tanh, loops.relu6, loops.elu, loops.gelu,
          loops.geluApproximate, loops.silu, loops.softplus, loops.abs}) {
      const float x = NAN;
      float y = 0;
      loop(&x, &y, 1);
      EXPECT_TRUE(std::isnan(y));
    }
  }
}

}  // namespace
}  // namespace dtf::runtime
