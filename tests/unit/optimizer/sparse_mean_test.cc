#include "common/optimizer/sparse_mean.h"

#include <gtest/gtest.h>

#include "common/base/random.h"
#include "common/optimizer/gradient_math.h"
#include "tests/unit/arena/sparse_fixture.h"

namespace dtf::optimizer {
namespace {

using namespace arena;

TEST(SparseMean, ARowsMeanIsOverThoseThatNameIt) {
  const auto shared = std::make_shared<const arena::GradientLayout>(
      16 + 16, std::vector<arena::SparseSlice>{{16, 5, 2}});
  const arena::GradientLayout& layout = *shared;
  const std::vector<arena::Gradient> gradients = {
      makeGradient(layout, {1}, {{{0, {1, 2}}, {3, {10, 20}}}}),
      makeGradient(layout, {2}, {{{3, {20, 40}}}}),
      makeGradient(layout, {6}, {{{3, {60, 30}}, {4, {5, 5}}}})};
  SparseMean mean(shared);
  mean.begin(gradients);
  for (uint64_t at = 0; at < 32; at += 16) mean.run(at, at + 16);
  const arena::Gradient taken = mean.take();
  EXPECT_EQ(layout.fault(taken), std::nullopt);
  EXPECT_EQ(taken.values[0], 3);
  const arena::RowsView rows = layout.rows(taken, 0);
  EXPECT_EQ(std::vector<uint32_t>(rows.rows.begin(), rows.rows.end()),
            (std::vector<uint32_t>{0, 3, 4}));
  EXPECT_EQ(std::vector<float>(rows.values, rows.values + 6),
            (std::vector<float>{1, 2, 30, 30, 5, 5}));
}

// A worker has already weighted its rows.
TEST(SparseMean, WeightsAreOfDenseElements) {
  const auto shared = std::make_shared<const arena::GradientLayout>(
      16 + 16, std::vector<arena::SparseSlice>{{16, 5, 2}});
  std::vector<arena::Gradient> gradients = {
      makeGradient(*shared, {1}, {{{0, {1, 2}}, {3, {10, 20}}}}),
      makeGradient(*shared, {5}, {{{3, {50, 40}}}})};
  gradients[0].weight = 3;
  SparseMean mean(shared);
  mean.begin(gradients);
  mean.run(0, 32);
  const arena::Gradient taken = mean.take();
  EXPECT_EQ(taken.values[0], 2);
  const arena::RowsView rows = shared->rows(taken, 0);
  EXPECT_EQ(std::vector<float>(rows.values, rows.values + 4), (std::vector<float>{1, 2, 30, 30}));
}

TEST(SparseMean, HasTheSameBitsForEverySplit) {
  constexpr uint64_t kRows = 61;
  constexpr uint64_t kRowElements = 7;
  const auto shared = std::make_shared<const arena::GradientLayout>(
      16 + 432, std::vector<arena::SparseSlice>{{16, kRows, kRowElements}});
  const arena::GradientLayout& layout = *shared;
  Random random(9, 0);
  std::vector<arena::Gradient> gradients;
  for (int i = 0; i < 3; ++i) {
    Rows rows;
    for (uint32_t row = 0; row < kRows; ++row) {
      if (random.below(2) == 0) continue;
      for (uint64_t j = 0; j < kRowElements; ++j) rows[row].push_back(random.uniform(-1, 1));
    }
    gradients.push_back(makeGradient(layout, {random.uniform(-1, 1)}, {rows}));
  }
  SparseMean whole(shared);
  whole.begin(gradients);
  whole.run(0, 448);
  const arena::Gradient expected = whole.take();
  SparseMean split(shared);
  split.begin(gradients);
  for (uint64_t at = 448; at > 0; at -= 16) split.run(at - 16, at);
  const arena::Gradient found = split.take();
  ASSERT_EQ(found.row_counts, expected.row_counts);
  EXPECT_EQ(std::memcmp(found.values.data(), expected.values.data(), found.values.size_bytes()), 0);
}

// A ps makes the mean on its loop at each step, in memory that a replica may still read.
TEST(SparseMean, UsesItsMemoryAgainWhenNobodyReadsItAnyMore) {
  const auto layout = std::make_shared<const arena::GradientLayout>(
      16 + 16, std::vector<arena::SparseSlice>{{16, 5, 2}});
  const std::vector<arena::Gradient> many = {
      makeGradient(*layout, {1}, {{{0, {1, 2}}, {3, {5, 6}}}}),
      makeGradient(*layout, {1}, {{{4, {1, 2}}}})};
  const std::vector<arena::Gradient> few = {makeGradient(*layout, {3}, {{{2, {7, 8}}}}),
                                            makeGradient(*layout, {3}, {{}})};
  SparseMean mean(layout);
  const auto next = [&](const std::vector<arena::Gradient>& gradients) {
    mean.begin(gradients);
    mean.run(0, 32);
    return mean.take();
  };
  std::optional<arena::Gradient> first = next(many);
  std::optional<arena::Gradient> second = next(few);
  const float* const place = first->values.data();
  EXPECT_NE(second->values.data(), place) << "the first is on its way";
  EXPECT_EQ(layout->rows(*first, 0).rows.back(), 4u);
  EXPECT_EQ(layout->rows(*second, 0).values[1], 8);
  first.reset();
  const arena::Gradient third = next(few);
  EXPECT_EQ(third.values.data(), place);
  EXPECT_EQ(layout->fault(third), std::nullopt);
  EXPECT_EQ(third.row_counts, second->row_counts);
}

}  // namespace
}  // namespace dtf::optimizer
