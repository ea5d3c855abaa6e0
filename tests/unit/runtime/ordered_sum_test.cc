#include "common/runtime/ordered_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace dtf::runtime {
namespace {

TEST(OrderedSum, IsThatOfOneThread) {
  constexpr int64_t kTerms = 7, kFloats = 103;
  std::vector<float> terms(kTerms * kFloats), expected(kFloats, 0.25f);
  for (size_t i = 0; i < terms.size(); ++i) terms[i] = 1.0f / static_cast<float>(i % 13 + 3);
  for (size_t i = 0; i < terms.size(); ++i) expected[i % kFloats] += terms[i];
  for (const int threads : {1, 2, 3, 5}) {
    ComputePool pool(threads);
    Processor cpu(bestIsa(), &pool);
    cpu.part_work = 1;
    std::vector<float> sum(kFloats, 0.25f);
    addInOrder(cpu, terms.data(), kTerms, kFloats, sum.data());
    EXPECT_EQ(sum, expected) << threads;
  }
}

}  // namespace
}  // namespace dtf::runtime
