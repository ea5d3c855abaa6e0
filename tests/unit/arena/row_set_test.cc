#include "common/arena/row_set.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace dtf::arena {
namespace {

// Three dense elements and a gap, a table of 6 x 3 and one of 4 x 1, with a gap in between.
GradientLayout layoutOfTwo() {
  return GradientLayout(36, {{4, 6, 3}, {32, 4, 1}});
}

// Rows 1 and 4 of the first table, row 3 of the second.
const RowSet kSome{{2, 1}, {1, 4, 3}};

TEST(RowSet, NamesTheRowsOfEachSlice) {
  EXPECT_TRUE(RowSet{}.isWhole());
  EXPECT_FALSE(kSome.isWhole());
  EXPECT_EQ(std::vector(kSome.of(0).begin(), kSome.of(0).end()), (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(std::vector(kSome.of(1).begin(), kSome.of(1).end()), (std::vector<uint32_t>{3}));
}

TEST(RowSet, WhatIsWrongWithOneIsSaid) {
  const auto fault = [](const RowSet& set) {
    return faultOf(set, layoutOfTwo()).value_or("nothing");
  };
  EXPECT_EQ(fault(kSome), "nothing");
  EXPECT_EQ(fault({{0, 0}, {}}), "nothing");
  EXPECT_EQ(fault({{2}, {1, 4}}), "rows of 1 sparse variables, but the shard has 2");
  EXPECT_EQ(fault({{7, 0}, {0, 1, 2, 3, 4, 5, 6}}),
            "7 rows of a sparse variable, but the shard has 6 of it");
  EXPECT_EQ(fault({{2, 1}, {1, 4}}), "the ids of 2 rows, but 3 are counted");
  EXPECT_EQ(fault({{2, 1}, {1, 6, 3}}), "row 6 of a sparse variable, but the shard has 6 of it");
  EXPECT_EQ(fault({{2, 1}, {4, 4, 3}}), "row 4 after row 4: rows must be ascending, each once");
}

TEST(RowSet, RowsComeToTheirPlacesAndOthersStay) {
  const GradientLayout layout = layoutOfTwo(), alone = layout.rowsAlone();
  EXPECT_EQ(alone.denseElements(), 0u);
  std::vector<float> arena(36), there(36, -1), rows(alone.elementsOf(kSome.counts), 7);
  std::iota(arena.begin(), arena.end(), 100.0F);
  gatherRows(layout, kSome, arena.data(), rows.data());
  const Gradient gradient{rows, nullptr, kSome.counts};
  EXPECT_EQ(alone.fault(gradient), std::nullopt);
  scatterRows(layout, gradient, there.data());
  for (size_t i = 0; i < there.size(); ++i) {
    const bool is_named = (i >= 7 && i < 10) || (i >= 16 && i < 19) || i == 35;
    EXPECT_EQ(there[i], is_named ? arena[i] : -1) << i;
  }
}

TEST(RowSet, OfNoRowsNothingIsWritten) {
  const GradientLayout layout = layoutOfTwo();
  const RowSet none{{0, 0}, {}};
  EXPECT_EQ(layout.rowsAlone().elementsOf(none.counts), 0u);
  std::vector<float> arena(36, -1);
  gatherRows(layout, none, arena.data(), nullptr);
  scatterRows(layout, {{}, nullptr, none.counts}, arena.data());
  EXPECT_EQ(arena, std::vector<float>(36, -1));
}

}  // namespace
}  // namespace dtf::arena
