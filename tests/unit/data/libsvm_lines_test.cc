#include "common/data/libsvm_lines.h"

#include <gtest/gtest.h>

#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

TEST(LibsvmLines, HasTheLabelAndTheNumbersWithTheirPlaces) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("a.svm", "# c\n\n +1\t2:0.5  7:1 # d\n3:4");
  LibsvmLines lines(path);
  ASSERT_TRUE(lines.next());
  EXPECT_EQ(lines.parse(1), "");
  EXPECT_EQ(lines.label(), "+1");
  EXPECT_EQ(lines.where(), path.string() + ":3:2");
  ASSERT_EQ(lines.values().size(), 2u);
  EXPECT_EQ(lines.values()[0].index, 2);
  EXPECT_EQ(lines.values()[0].value, 0.5F);
  EXPECT_EQ(lines.where(lines.values()[1].column), path.string() + ":3:12");
  ASSERT_TRUE(lines.next());
  EXPECT_EQ(lines.parse(1), "");
  EXPECT_EQ(lines.label(), "");
  EXPECT_EQ(lines.values().at(0).index, 3);
  EXPECT_FALSE(lines.next());
}

// A line may go over several pieces of the file that are read at once.
TEST(LibsvmLines, LongLinesAreWhole) {
  const TemporaryFolder folder;
  std::string text = "1";
  for (int i = 1; i <= 30'000; ++i) text += " " + std::to_string(i) + ":1";
  LibsvmLines lines(folder.write("a.svm", text + "#" + std::string(200'000, 'c') + "\n0 1:1\n"));
  ASSERT_TRUE(lines.next());
  EXPECT_EQ(lines.parse(1), "");
  EXPECT_EQ(lines.values().size(), 30'000u);
  ASSERT_TRUE(lines.next());
  EXPECT_EQ(lines.parse(1), "");
  EXPECT_EQ(lines.label(), "0");
}

}  // namespace
}  // namespace dtf::data
