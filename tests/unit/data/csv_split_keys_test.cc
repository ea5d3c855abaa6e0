#include "common/data/csv_split_keys.h"

#include <gtest/gtest.h>

#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

class SplitKeysTest : public ::testing::Test {
 protected:
  // Returns the keys of "when,a,b,kind" records; a fault is a key of 0.
  std::vector<uint64_t> keysOf(const std::string& text) {
    CsvRecords records(folder_.write("t.csv", text), ',');
    SplitKeys keys(spec_, true);
    CsvColumns columns;
    columns.features = {1, 2};
    columns.label = 3;
    columns.split = 0;
    while (records.next()) {
      fault_ = keys.read(records, columns);
      if (fault_.empty()) keys.keep();
    }
    return keys.take();
  }

  TemporaryFolder folder_;
  cluster::CsvSpec spec_;
  std::string fault_;
};

TEST_F(SplitKeysTest, OfAHashTheTextThatTheModelReadsCounts) {
  const std::vector<uint64_t> keys = keysOf("1,2,3,x\n9,2, 3,x\n1,2,4,x\n1,23,,x\n");
  ASSERT_EQ(keys.size(), 4u);
  EXPECT_EQ(keys[0], keys[1]) << "neither another column nor spaces";
  EXPECT_NE(keys[0], keys[2]);
  EXPECT_NE(keys[0], keys[3]) << "fields are apart";
}

TEST_F(SplitKeysTest, OfAGroupOneColumnCounts) {
  spec_.split_by = cluster::SplitBy::kGroup;
  const std::vector<uint64_t> keys = keysOf("u1,2,3,x\nu1,7,8,y\nu2,2,3,x\n");
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_NE(keys[0], keys[2]);
}

TEST_F(SplitKeysTest, OfATimeTheOrderCountsAndOtherTextIsAFault) {
  spec_.split_by = cluster::SplitBy::kTime;
  const std::vector<uint64_t> keys = keysOf("2024-01-02,2,3,x\n2023-01-02,7,8,y\nsoon,2,3,x\n");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_GT(keys[0], keys[1]);
  EXPECT_EQ(fault_.find("is no time to split by"), 0u);
}

}  // namespace
}  // namespace dtf::data
