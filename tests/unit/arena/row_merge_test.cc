#include "common/arena/row_merge.h"

#include <gtest/gtest.h>

namespace dtf::arena {
namespace {

struct Named {
  uint32_t row;
  std::vector<float> firsts;  // of its values in each gradient
  bool operator==(const Named&) const = default;
};

class RowMergeTest : public ::testing::Test {
 protected:
  std::vector<Named> mergeFrom(uint64_t first) {
    const std::vector<RowsView> views = {
        {a_, a_values_.data()}, {b_, b_values_.data()}, {none_, nullptr}};
    std::vector<Named> merged;
    for (RowMerge merge(views, 2, first); !merge.done(); merge.next()) {
      merged.push_back({merge.row(), {}});
      for (const float* const values : merge.values()) merged.back().firsts.push_back(values[0]);
    }
    return merged;
  }
  const std::vector<uint32_t> a_ = {1, 4, 7};
  const std::vector<float> a_values_ = {10, 0, 40, 0, 70, 0};
  const std::vector<uint32_t> b_ = {0, 4};
  const std::vector<float> b_values_ = {-1, 0, -40, 0};
  const std::vector<uint32_t> none_ = {};
};

TEST_F(RowMergeTest, RowsComeAscendingWithThoseThatNameThem) {
  EXPECT_EQ(mergeFrom(0), (std::vector<Named>{{0, {-1}}, {1, {10}}, {4, {40, -40}}, {7, {70}}}));
}

TEST_F(RowMergeTest, BeginsAtARow) {
  EXPECT_EQ(mergeFrom(2), (std::vector<Named>{{4, {40, -40}}, {7, {70}}}));
  EXPECT_TRUE(mergeFrom(8).empty());
}

}  // namespace
}  // namespace dtf::arena
