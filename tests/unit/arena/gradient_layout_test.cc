#include "common/arena/gradient_layout.h"

#include <gtest/gtest.h>

#include "tests/unit/arena/sparse_fixture.h"

namespace dtf::arena {
namespace {

// 5 dense elements and two tables of 4 x 3 and 6 x 1, the first split over two ps.
ParameterLayout mixedLayout() {
  return makeLayout({{"table", Shape{4, 3}, {{0, 0, 6}, {1, 6, 6}}, std::nullopt, true},
                     {"bias", Shape{5}, {{0, 0, 5}}},
                     {"small", Shape{6, 1}, {{0, 0, 6}}, std::nullopt, true}},
                    2);
}

TEST(GradientLayout, OfADenseShardIsItsArena) {
  const ParameterLayout layout = makeLayout({{"v", Shape{20}, {{0, 0, 20}}}}, 1);
  const GradientLayout gradients(layout, 0);
  EXPECT_EQ(gradients.denseElements(), 32u);
  EXPECT_EQ(gradients.elementsOf({}), 32u);
  EXPECT_EQ(gradients.elementsMax(), 32u);
  const std::vector<float> arena(32);
  EXPECT_EQ(gradients.fault({arena, nullptr}), std::nullopt);
  EXPECT_EQ(gradients.fault({{arena.data(), 31}, nullptr}),
            "a gradient of 31 elements for a shard of 32");
  EXPECT_EQ(gradients.fault({arena, nullptr, {1}}),
            "rows of 1 sparse variables, but the shard has 0");
}

TEST(GradientLayout, SparseSlicesLieBehindTheDense) {
  const ParameterLayout layout = mixedLayout();
  EXPECT_EQ(layout.shards[0].slices[0].variable, 1u) << "the dense one, though it comes later";
  const GradientLayout first(layout, 0);
  EXPECT_EQ(first.denseElements(), 16u);
  EXPECT_EQ(first.sparse(), (std::vector<SparseSlice>{{16, 2, 3}, {32, 6, 1}}));
  EXPECT_EQ(GradientLayout(layout, 1).sparse(), (std::vector<SparseSlice>{{0, 2, 3}}));
  EXPECT_EQ(GradientLayout(layout, 1).denseElements(), 0u);
}

TEST(GradientLayout, OnlyRowsThatAreNamedTakeRoom) {
  const GradientLayout layout(mixedLayout(), 0);
  const std::vector<uint32_t> none = {0, 0};
  const std::vector<uint32_t> some = {1, 3};
  EXPECT_EQ(layout.elementsOf(none), 16u);
  EXPECT_EQ(layout.rowsAt(some, 0), 16u);
  EXPECT_EQ(layout.rowsAt(some, 1), 16u + 4);
  EXPECT_EQ(layout.elementsOf(some), 16u + 4 + 6);
  EXPECT_EQ(layout.elementsOf(std::vector<uint32_t>{0, 1}), 18u);
  EXPECT_EQ(layout.elementsOf(std::vector<uint32_t>{1, 1}), 22u);
  EXPECT_EQ(layout.elementsMax(), 16u + 8 + 12);
  const Gradient gradient =
      makeGradient(layout, {1, 2}, {{{1, {7, 8, 9}}}, {{0, {4}}, {2, {5}}, {5, {6}}}});
  EXPECT_EQ(layout.fault(gradient), std::nullopt);
  const RowsView rows = layout.rows(gradient, 1);
  EXPECT_EQ(std::vector<uint32_t>(rows.rows.begin(), rows.rows.end()),
            (std::vector<uint32_t>{0, 2, 5}));
  EXPECT_EQ(std::vector<float>(rows.values, rows.values + 3), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(layout.rows(gradient, 0).values[2], 9);
}

TEST(GradientLayout, WhatIsNoGradientOfItIsSaid) {
  const GradientLayout layout(mixedLayout(), 0);
  const Gradient good = makeGradient(layout, {}, {{{0, {1, 1, 1}}, {1, {1, 1, 1}}}, {{5, {1}}}});
  EXPECT_EQ(layout.fault(good), std::nullopt);
  Gradient bad = good;
  bad.row_counts = {2};
  EXPECT_EQ(layout.fault(bad), "rows of 1 sparse variables, but the shard has 2");
  bad.row_counts = {3, 1};
  EXPECT_EQ(layout.fault(bad), "3 rows of a sparse variable, but the shard has 2 of it");
  bad.row_counts = {1, 1};
  EXPECT_EQ(layout.fault(bad),
            "a gradient of 26 elements, but 16 dense elements and its rows make 22");
  EXPECT_EQ(layout.fault(makeGradient(layout, {}, {{}, {{6, {1}}}})),
            "row 6 of a sparse variable, but the shard has 6 of it");
  Gradient twice = makeGradient(layout, {}, {{}, {{3, {1}}, {4, {1}}}});
  float* const ids = const_cast<float*>(twice.values.data()) + layout.rowsAt(twice.row_counts, 1);
  ids[1] = ids[0];
  EXPECT_EQ(layout.fault(twice), "row 3 after row 3: rows must be ascending, each once");
}

}  // namespace
}  // namespace dtf::arena
