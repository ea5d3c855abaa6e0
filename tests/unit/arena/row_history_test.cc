#include "common/arena/row_history.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/arena/sparse_fixture.h"

namespace dtf::arena {
namespace {

// 16 dense elements, a table of 50 x 8 and one of 64 x 1.
std::shared_ptr<const GradientLayout> twoTables() {
  return std::make_shared<const GradientLayout>(
      16 + 400 + 64, std::vector<SparseSlice>{{16, 50, 8}, {416, 64, 1}});
}

class RowHistoryTest : public ::testing::Test {
 protected:
  Gradient naming(const std::vector<uint32_t>& first, const std::vector<uint32_t>& second) const {
    std::vector<Rows> rows(2);
    for (const uint32_t row : first) rows[0][row] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (const uint32_t row : second) rows[1][row] = {5};
    return makeGradient(*layout_, {}, rows);
  }
  void add(const std::vector<Gradient>& gradients) { history_.add(gradients); }
  // Returns the rows of a table that an arena of that state lacks; nullopt: all.
  std::optional<std::set<uint32_t>> missing(uint64_t state, size_t table = 0) const {
    const std::optional<MissingRows> found = history_.missingSince(state);
    if (!found) return std::nullopt;
    std::set<uint32_t> rows;
    for (const auto& changed : *found)
      changed->forEach(table, [&](std::span<const uint32_t> of_one) {
        rows.insert(of_one.begin(), of_one.end());
      });
    return rows;
  }

  const std::shared_ptr<const GradientLayout> layout_ = twoTables();
  RowHistory history_{layout_};
};

using Set = std::set<uint32_t>;

TEST_F(RowHistoryTest, AnArenaLacksWhatTheUpdatesSinceThenNamed) {
  history_.restart();
  const uint64_t first = history_.state();
  EXPECT_EQ(missing(first), Set{});
  add({naming({7}, {1}), naming({3, 7}, {})});
  add({naming({9}, {63})});
  EXPECT_EQ(missing(first), (Set{3, 7, 9}));
  EXPECT_EQ(missing(first, 1), (Set{1, 63}));
  EXPECT_EQ(missing(first + 1), Set{9});
  EXPECT_EQ(missing(history_.state()), Set{});
  EXPECT_EQ(missing(0), std::nullopt) << "an arena that held something else";
}

TEST_F(RowHistoryTest, NothingLeadsFromValuesThatWereReplaced) {
  history_.restart();
  add({naming({7}, {})});
  const uint64_t before = history_.state();
  history_.restart();
  EXPECT_EQ(missing(before), std::nullopt);
  add({naming({8}, {})});
  EXPECT_EQ(missing(before), std::nullopt);
  EXPECT_EQ(missing(before + 1), Set{8});
}

TEST_F(RowHistoryTest, ForgetsWhatIsLongAgo) {
  history_.restart();
  const uint64_t first = history_.state();
  for (uint32_t i = 0; i < 50; ++i) add({naming({i}, {})});
  EXPECT_EQ(missing(first), std::nullopt);
  EXPECT_EQ(missing(history_.state() - 2), (Set{48, 49}));
}

TEST_F(RowHistoryTest, KeepsAnEighthOfTheTablesInIdsAtMost) {
  history_.restart();
  std::vector<uint32_t> twenty;
  for (uint32_t row = 0; row < 20; ++row) twenty.push_back(row);
  for (int i = 0; i < 2; ++i) add({naming({}, twenty)});
  EXPECT_TRUE(missing(history_.state() - 2));
  add({naming({}, twenty)});  // 60, and 464 / 8 is 58
  EXPECT_TRUE(missing(history_.state() - 2));
  EXPECT_EQ(missing(history_.state() - 3), std::nullopt);
}

TEST_F(RowHistoryTest, ManyRowsAreNotCopiedOneByOne) {
  history_.restart();
  std::vector<uint32_t> most;
  for (uint32_t row = 0; row < 29; ++row) most.push_back(row);
  add({naming(most, {})});  // 232 elements, half of the tables'
  EXPECT_TRUE(missing(history_.state() - 1));
  add({naming({}, {0})});
  EXPECT_EQ(missing(history_.state() - 2), std::nullopt);
  EXPECT_EQ(missing(history_.state() - 1), Set{});
}

// Rows that cross the ends of a range are copied only inside it.
TEST_F(RowHistoryTest, CopiesWhatIsMissingWithinARange) {
  history_.restart();
  add({naming({0, 2, 49}, {5}), naming({2, 3}, {})});
  const MissingRows missing = history_.missingSince(history_.state() - 1).value();
  std::vector<float> from(480), to(480);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i + 1);
  const SparseSlice& table = layout_->sparse()[0];
  copyMissing(missing, table, 0, from.data(), to.data(), 34, 37);
  for (size_t i = 0; i < to.size(); ++i) EXPECT_EQ(to[i], i >= 34 && i < 37 ? from[i] : 0) << i;
  copyMissing(missing, table, 0, from.data(), to.data(), 16, 34);
  copyMissing(missing, table, 0, from.data(), to.data(), 37, 416);
  copyMissing(missing, layout_->sparse()[1], 1, from.data(), to.data(), 416, 480);
  const std::set<size_t> rows = {0, 2, 3, 49};
  for (size_t i = 0; i < to.size(); ++i) {
    const bool is_named = i < 16 ? false : i < 416 ? rows.contains((i - 16) / 8) : i == 416 + 5;
    EXPECT_EQ(to[i], is_named ? from[i] : 0) << i;
  }
}

}  // namespace
}  // namespace dtf::arena
