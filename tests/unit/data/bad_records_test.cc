#include "common/data/bad_records.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::data {
namespace {

template <class Action>
std::string mistakeOf(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "";
}

TEST(BadRecords, ThoseThatAreAllowedAreLeftOutWithTheirReasons) {
  BadRecords bad("records", 2);
  bad.add({3, "t.csv:5:1: 'x' is no number"});
  bad.add({7, "t.csv:9:1: 'y' is no number"});
  EXPECT_EQ(mistakeOf([&] { bad.finish("t.csv", 10); }), "");
  const std::vector<BadRecord> left_out = bad.take();
  ASSERT_EQ(left_out.size(), 2u);
  EXPECT_EQ(left_out[1].index, 7);
  EXPECT_EQ(left_out[1].reason, "t.csv:9:1: 'y' is no number");
}

TEST(BadRecords, OneTooManyIsAnErrorThatNamesThemAll) {
  BadRecords bad("records", 1);
  bad.add({3, "t.csv:5:1: 'x' is no number"});
  bad.add({7, "t.csv:9:1: 'y' is no number"});
  EXPECT_EQ(mistakeOf([&] { bad.finish("t.csv", 10); }),
            "t.csv: 2 of 12 records can't be read, and max_bad_records is 1; raise "
            "max_bad_records of data.train or data.eval to 2, or mend the rows:\n  t.csv:5:1: 'x' "
            "is no number\n  "
            "t.csv:9:1: 'y' is no number");
}

// A wrong delimiter makes every record a bad one: reading ends before the end of the file.
TEST(BadRecords, ManyEndTheReadingWithTheFirstTen) {
  BadRecords bad("images", 0);
  const std::string mistake = mistakeOf([&] {
    for (int i = 0; i < 1000; ++i) bad.add({i, "f/" + std::to_string(i) + ".png: cut off"});
  });
  EXPECT_EQ(mistake.find("11 images or more can't be read, and max_bad_records is 0; raise "
                         "max_bad_records of data.train or data.eval to their number, or mend the "
                         "images:\n  f/0.png"),
            0u)
      << mistake;
  EXPECT_NE(mistake.find("\n  f/9.png: cut off\n  and more"), std::string::npos) << mistake;
}

TEST(BadRecords, AtLeastOneIsToBeGood) {
  BadRecords bad("records", 100);
  EXPECT_EQ(mistakeOf([&] { bad.finish("t.csv", 0); }), "") << "an empty file is another's affair";
  bad.add({0, "t.csv:2:1: 'x' is no number"});
  EXPECT_EQ(mistakeOf([&] { bad.finish("t.csv", 0); }),
            "t.csv: none of 1 records can be read:\n  t.csv:2:1: 'x' is no number");
}

// A file to predict from that has only bad records is not kept in memory.
TEST(BadRecords, ManyWithoutAGoodOneEndTheReadingWhateverTheLimit) {
  BadRecords bad("records", kAllMayBeBad);
  const std::string mistake = mistakeOf([&] {
    for (int i = 0; i < 1'000'000; ++i) bad.add({i, "t.csv: no number"});
  });
  EXPECT_EQ(mistake.find("none of the first 100000 records can be read:"), 0u) << mistake;
  BadRecords some("records", kAllMayBeBad);
  EXPECT_EQ(mistakeOf([&] {
              for (int i = 1; i < 150'000; ++i) some.add({i, "t.csv: no number"});
            }),
            "")
      << "the first record was good";
}

}  // namespace
}  // namespace dtf::data
