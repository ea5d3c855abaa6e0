#include "common/runtime/matrix_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/buffer.h"
#include "tests/unit/runtime/guarded_memory.h"

namespace dtf::runtime {
namespace {

struct Sizes {
  int64_t m, k, n;
};

// Around the edges of tiles, panels and blocks of every instruction set.
constexpr Sizes kSizes[] = {{1, 1, 1},     {1, 40, 33},   {7, 5, 45},    {12, 16, 32},
                            {13, 17, 129}, {25, 257, 31}, {100, 30, 10}, {205, 3, 70},
                            {9, 600, 5},   {5, 2, 2100},  {400, 2, 65},  {3, 513, 16},
                            {300, 9, 1},   {261, 40, 10}, {530, 7, 20},  {128, 70, 3},
                            {130, 20, 136}};  // one of five threads has 8 columns

// Every matrix ends where inaccessible memory begins.
class Product {
 public:
  Product(const Processor& cpu, const Sizes& sizes, bool transpose_a, bool transpose_b)
      : a_(static_cast<size_t>(sizes.m * sizes.k)),
        b_(static_cast<size_t>(sizes.k * sizes.n)),
        c_(static_cast<size_t>(sizes.m * sizes.n)),
        isa_(cpu.isa) {
    product_.m = sizes.m, product_.k = sizes.k, product_.n = sizes.n;
    product_.transpose_a = transpose_a, product_.transpose_b = transpose_b;
    Random random(7);
    for (int64_t i = 0; i < sizes.m * sizes.k; ++i) a_.data()[i] = random.uniform(-1, 1);
    for (int64_t i = 0; i < sizes.k * sizes.n; ++i) b_.data()[i] = random.uniform(-1, 1);
    for (int64_t i = 0; i < sizes.m * sizes.n; ++i) c_.data()[i] = NAN;
    product_.a = a_.data(), product_.b = b_.data(), product_.c = c_.data();
    testing::Guarded<float> workspace(matrixProductWorkspaceBytes(cpu, product_) / sizeof(float));
    product_.workspace = workspace.data();
    matrixProduct(cpu, product_);
  }

  const float* result() { return c_.data(); }

  // One chain over k, as matrix_product.h promises.
  float expected(int64_t row, int64_t column) {
    const MatrixProduct& p = product_;
    float sum = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      const float a = p.a[p.transpose_a ? k * p.m + row : row * p.k + k];
      const float b = p.b[p.transpose_b ? column * p.k + k : k * p.n + column];
      sum = isa_ == Isa::kBaseline ? a * b + sum : std::fma(a, b, sum);
    }
    return sum;
  }

 private:
  testing::Guarded<float> a_, b_, c_;
  Isa isa_;
  MatrixProduct product_;
};

void expectChains(const Processor& cpu) {
  for (const Sizes& s : kSizes) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << isaName(cpu.isa) << ", " << cpu.threads() << " threads: " << s.m << " x "
                     << s.k << " x " << s.n << (ta ? " A^T" : "") << (tb ? " B^T" : ""));
        Product product(cpu, s, ta, tb);
        for (int64_t i = 0; i < s.m * s.n; ++i) {
          ASSERT_EQ(product.result()[i], product.expected(i / s.n, i % s.n)) << "element " << i;
        }
      }
    }
  }
}

TEST(MatrixProduct, AddsUpEveryElementInTheOrderOfK) {
  for (const Isa isa : supportedIsas()) expectChains(isa);
}

TEST(MatrixProduct, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const int threads : {2, 3, 5}) {
    ComputePool pool(threads);
    for (const Isa isa : supportedIsas()) {
      Processor cpu(isa, &pool);
      cpu.part_work = 1;
      expectChains(cpu);
    }
  }
}

// Multiplies parts of wider matrices and adds to the values of C: the sums equal one chain over all
// of k.
TEST(MatrixProduct, AddsToPartsOfWiderMatrices) {
  constexpr int64_t kM = 29, kK = 310, kN = 37, kWide = 320, kFirst = 111;
  Random random(8);
  std::vector<float> a(kM * kWide), b(kK * kWide), c(kM * kWide, 5), whole(kM * kN);
  for (float& x : a) x = random.uniform(-1, 1);
  for (float& x : b) x = random.uniform(-1, 1);
  ComputePool pool(3);
  for (const Isa isa : supportedIsas()) {
    SCOPED_TRACE(isaName(isa));
    MatrixProduct p;
    p.m = kM, p.k = kK, p.n = kN;
    p.a = a.data(), p.b = b.data(), p.c = whole.data();
    p.a_stride = p.b_stride = kWide;
    Processor cpu(isa, &pool);
    cpu.part_work = 1;
    Buffer workspace(matrixProductWorkspaceBytes(cpu, p));
    p.workspace = workspace.as<float>();
    matrixProduct(isa, p);
    p.c = c.data(), p.c_stride = kWide;
    p.k = kFirst;
    matrixProduct(cpu, p);
    p.a += kFirst, p.b += kFirst * kWide, p.k = kK - kFirst;
    p.accumulate = true;
    matrixProduct(cpu, p);
    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < kWide; ++j) {
        ASSERT_EQ(c[i * kWide + j], j < kN ? whole[i * kN + j] : 5) << i << ", " << j;
      }
    }
  }
}

// The elements between the rows belong to other columns.
TEST(MatrixProduct, WritesItsColumnsOfAWiderMatrixAlone) {
  constexpr int64_t kM = 290, kK = 60, kN = 10, kWide = 37;
  Random random(9);
  std::vector<float> a(kK * kM), b(kK * kN), c(kM * kWide, 5), whole(kM * kN);
  for (float& x : a) x = random.uniform(-1, 1);
  for (float& x : b) x = random.uniform(-1, 1);
  for (const Isa isa : supportedIsas()) {
    SCOPED_TRACE(isaName(isa));
    MatrixProduct p;
    p.m = kM, p.k = kK, p.n = kN, p.transpose_a = true;
    p.a = a.data(), p.b = b.data(), p.c = whole.data();
    Buffer workspace(matrixProductWorkspaceBytes(isa, p));
    p.workspace = workspace.as<float>();
    matrixProduct(isa, p);
    p.c = c.data(), p.c_stride = kWide;
    matrixProduct(isa, p);
    for (int64_t i = 0; i < kM * kWide; ++i) {
      const int64_t column = i % kWide;
      ASSERT_EQ(c[i], column < kN ? whole[i / kWide * kN + column] : 5) << i;
    }
  }
}

// Blocks of a long k are computed with the workspace of the longest.
TEST(MatrixProduct, NeedsNoMoreForAShorterSum) {
  for (const Isa isa : supportedIsas()) {
    MatrixProduct p;
    p.m = 300, p.n = 320, p.transpose_a = true;
    size_t before = 0;
    for (p.k = 1; p.k < 900; ++p.k) {
      const size_t bytes = matrixProductWorkspaceBytes(isa, p);
      EXPECT_GE(bytes, before) << isaName(isa) << ", k = " << p.k;
      before = bytes;
    }
  }
}

TEST(MatrixProduct, NeedsAWorkspaceThatDoesNotGrowWithTheMatrices) {
  for (const Isa isa : supportedIsas()) {
    MatrixProduct huge;
    huge.m = huge.k = huge.n = 1'000'000;
    EXPECT_LT(matrixProductWorkspaceBytes(isa, huge), 3'500'000u) << isaName(isa);
  }
}

TEST(MatrixProductDeathTest, RefusesAStrideShorterThanItsRow) {
  float x[4] = {};
  MatrixProduct p;
  p.m = p.k = p.n = 2, p.a = x, p.b = x, p.c = x, p.b_stride = 1;
  EXPECT_DEATH(matrixProduct(Isa::kBaseline, p), "shorter than its row");
}

TEST(MatrixProductDeathTest, RefusesAnEmptyProduct) {
  EXPECT_DEATH(matrixProduct(Isa::kBaseline, {}), "an empty product");
}

}  // namespace
}  // namespace dtf::runtime
