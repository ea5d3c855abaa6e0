// Products of factors that are rounded to bfloat16, on every instruction set and on matrix tiles.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "common/base/isa.h"
#include "common/base/random.h"
#include "common/runtime/matrix_product.h"
#include "common/tensor/buffer.h"
#include "tests/unit/runtime/guarded_memory.h"

namespace dtf::runtime {
namespace {

struct RoundedSizes {
  int64_t m, k, n;
};

// Around the edges of tiles, panels and blocks.
constexpr RoundedSizes kRoundedSizes[] = {
    {1, 1, 1},     {1, 40, 33},    {7, 5, 45},    {16, 32, 16}, {32, 64, 32},
    {13, 17, 129}, {33, 257, 31},  {100, 30, 10}, {48, 31, 48}, {9, 600, 5},
    {5, 2, 600},   {70, 1025, 17}, {17, 33, 15}};

// Rounds to the nearest, to the even one of two; numbers below 2^-126 become 0.
float rounded(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return x;
  if ((bits & 0x7fffffff) < 0x00800000) return std::bit_cast<float>(bits & 0x80000000);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

struct RoundedProduct {
  RoundedProduct(const RoundedSizes& sizes, bool transpose_a, bool transpose_b)
      : a(static_cast<size_t>(sizes.m * sizes.k)),
        b(static_cast<size_t>(sizes.k * sizes.n)),
        c(static_cast<size_t>(sizes.m * sizes.n)) {
    product.m = sizes.m, product.k = sizes.k, product.n = sizes.n;
    product.transpose_a = transpose_a, product.transpose_b = transpose_b;
    Random random(7);
    for (int64_t i = 0; i < sizes.m * sizes.k; ++i) a.data()[i] = random.uniform(-1, 1);
    for (int64_t i = 0; i < sizes.k * sizes.n; ++i) b.data()[i] = random.uniform(-1, 1);
    for (int64_t i = 0; i < sizes.m * sizes.n; ++i) c.data()[i] = NAN;
    product.a = a.data(), product.b = b.data(), product.c = c.data();
  }

  void run(const Processor& cpu) {
    Buffer workspace(matrixProductWorkspaceBytes(cpu.rounding(), product));
    product.workspace = workspace.as<float>();
    matrixProduct(cpu.rounding(), product);
  }

  // The sum in the order that matrix_product.h promises, from `before` on.
  float expected(int64_t row, int64_t column, float before) const {
    const MatrixProduct& p = product;
    float sum = before;
    for (int64_t first = 0; first < p.k; first += 32) {
      float chains[2] = {0, 0};
      for (int64_t k = first; k < std::min(first + 32, p.k); ++k) {
        const float x = rounded(p.a[p.transpose_a ? k * p.m + row : row * p.k + k]);
        const float y = rounded(p.b[p.transpose_b ? column * p.k + k : k * p.n + column]);
        chains[k % 2] = std::fma(x, y, chains[k % 2]);
      }
      sum += chains[0] + chains[1];
    }
    return sum;
  }

  testing::Guarded<float> a, b, c;  // each ends where inaccessible memory begins
  MatrixProduct product;
};

void expectTwoChains(const Processor& cpu) {
  for (const RoundedSizes& s : kRoundedSizes)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << isaName(cpu.isa) << ", " << cpu.threads() << " threads: " << s.m << " x "
                     << s.k << " x " << s.n << (ta ? " A^T" : "") << (tb ? " B^T" : ""));
        RoundedProduct product(s, ta, tb);
        product.run(cpu);
        for (int64_t i = 0; i < s.m * s.n; ++i)
          ASSERT_EQ(product.c.data()[i], product.expected(i / s.n, i % s.n, 0)) << "element " << i;
        product.product.accumulate = true;
        const std::vector<float> before(product.c.data(), product.c.data() + s.m * s.n);
        product.run(cpu);
        for (int64_t i = 0; i < s.m * s.n; ++i)
          ASSERT_EQ(product.c.data()[i],
                    product.expected(i / s.n, i % s.n, before[static_cast<size_t>(i)]))
              << "element " << i << ", added";
      }
}

TEST(BFloat16Product, GivesTheBitsOfTilesOnEveryInstructionSet) {
  std::printf("matrix tiles: %s\n", hasMatrixTiles() ? "yes" : "no, so AMX's own code isn't run");
  for (const Isa isa : supportedIsas()) expectTwoChains(isa);
}

TEST(BFloat16Product, GivesTheSameBitsOnAnyNumberOfThreads) {
  ComputePool pool(3);
  Processor cpu(bestIsa(), &pool);
  cpu.part_work = 1;
  expectTwoChains(cpu);
}

TEST(BFloat16Product, RoundsWhatIsInfiniteTinyOrNoNumber) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  for (const Isa isa : supportedIsas()) {
    SCOPED_TRACE(isaName(isa));
    for (const bool turned : {false, true}) {
      RoundedProduct product({6, 1, 1}, turned, turned);
      const float given[] = {kInf, -kInf, NAN, tiny, largest, 1.00390625f /* halfway */};
      std::copy(std::begin(given), std::end(given), product.a.data());
      product.b.data()[0] = 1;
      product.run(isa);
      const float* const c = product.c.data();
      EXPECT_EQ(c[0], kInf);
      EXPECT_EQ(c[1], -kInf);
      EXPECT_TRUE(std::isnan(c[2]));
      EXPECT_EQ(c[3], 0);
      EXPECT_EQ(c[4], kInf);
      EXPECT_EQ(c[5], 1);
    }
  }
}

TEST(BFloat16Product, AddsToAPartOfAWiderMatrix) {
  for (const Isa isa : supportedIsas()) {
    RoundedProduct product({20, 40, 20}, false, false);
    std::vector<float> wide(20 * 50, 3);
    MatrixProduct& p = product.product;
    p.c = wide.data() + 7;
    p.c_stride = 50;
    product.run(isa);
    for (int64_t r = 0; r < 20; ++r)
      for (int64_t column = 0; column < 50; ++column) {
        const bool inside = column >= 7 && column < 27;
        EXPECT_EQ(wide[static_cast<size_t>(r * 50 + column)],
                  inside ? product.expected(r, column - 7, 0) : 3)
            << r << ", " << column;
      }
  }
}

TEST(BFloat16ProductDeathTest, RefusesRunsThatNobodyPacks) {
  const float* const runs[1] = {nullptr};
  RoundedProduct product({1, 32, 1}, false, false);
  product.product.a = nullptr;
  product.product.a_runs = runs;
  product.product.a_run = 32;
  product.product.a_stride = 1;
  Buffer workspace(1 << 20);
  product.product.workspace = workspace.as<float>();
  EXPECT_DEATH(matrixProduct(Processor(bestIsa()), product.product), "rounded products");
  product.product.a_run = 16;
  EXPECT_DEATH(matrixProduct(Processor(bestIsa()).rounding(), product.product), "stride");
}

}  // namespace
}  // namespace dtf::runtime
