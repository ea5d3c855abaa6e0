#include "launcher/init/column_facts.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace dtf::launcher {
namespace {

using Use = ColumnProfile::Use;
using ::testing::HasSubstr;

ColumnFacts factsOf(const std::vector<std::string>& fields) {
  ColumnFacts facts;
  for (const std::string& field : fields) facts.add(field);
  return facts;
}

ColumnProfile feature(const std::vector<std::string>& fields, const std::string& name = "a") {
  ColumnProfile column;
  column.name = name;
  factsOf(fields).judgeFeature(column);
  return column;
}

struct Target {
  ColumnProfile column;
  bool classes = false;
  std::string wrong = {};
};

Target target(const std::vector<std::string>& fields) {
  Target judged;
  judged.classes = factsOf(fields).judgeTarget(judged.column, judged.wrong);
  return judged;
}

std::vector<std::string> repeated(const std::vector<std::string>& words, int times) {
  std::vector<std::string> all;
  for (int i = 0; i < times; ++i) all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST(ColumnFacts, MarkersOfAMissingValue) {
  for (const char* field : {"", "NA", "na", "N/A", "NaN", "null", "NULL", "None", "?", "-"})
    EXPECT_TRUE(isMissingField(field)) << field;
  for (const char* field : {"0", "no", "nana", "nothing", "-1", "a"})
    EXPECT_FALSE(isMissingField(field)) << field;
}

TEST(ColumnFacts, NumbersHaveAMeanAndADeviation) {
  const ColumnProfile column = feature({"1", "3", "", "5.0", "3"});
  EXPECT_EQ(column.use, Use::kNumber);
  EXPECT_EQ(column.missing, 1);
  EXPECT_DOUBLE_EQ(column.mean, 3);
  EXPECT_NEAR(column.deviation, 1.41421, 1e-5);
}

TEST(ColumnFacts, AFewWordsAmongNumbersAreMissingNumbers) {
  std::vector<std::string> fields = repeated({"1", "2.5", "4"}, 20);
  fields.push_back("unknown");
  const ColumnProfile column = feature(fields);
  EXPECT_EQ(column.use, Use::kNumber);
  EXPECT_EQ(column.missing, 1);
  EXPECT_EQ(column.odd, "unknown");
}

TEST(ColumnFacts, WordsAreListedInTheirOrder) {
  const ColumnProfile column = feature(repeated({"south", "north", "", "north"}, 10));
  EXPECT_EQ(column.use, Use::kWords);
  EXPECT_EQ(column.words, (std::vector<WordCount>{{"north", 20}, {"south", 10}}));
  EXPECT_EQ(column.missing, 10);
}

TEST(ColumnFacts, ManyWordsAreHashed) {
  std::vector<std::string> fields;
  for (int i = 0; i < 1000; ++i) fields.push_back("w" + std::to_string(i % 300));
  const ColumnProfile column = feature(fields);
  EXPECT_EQ(column.use, Use::kWords);
  EXPECT_EQ(column.distinct, 300);
  EXPECT_TRUE(column.words.empty());
}

TEST(ColumnFacts, WordsThatNoFileCanHoldAreHashed) {
  EXPECT_TRUE(feature(repeated({"\xff", "b"}, 10)).words.empty());
  EXPECT_EQ(feature(repeated({"\xff", "b"}, 10)).use, Use::kWords);
}

TEST(ColumnFacts, UselessColumnsAreLeftOutWithAReason) {
  const std::vector<std::pair<ColumnProfile, std::string>> useless = {
      {feature({"1", "2", "3", "4"}), "it counts the records"},
      {feature({"7", "3", "9"}, "user_id"), "it numbers the records"},
      {feature({"7", "7", "7"}), "the same number"},
      {feature({"a", "a"}), "the same word"},
      {feature({"Ann", "Bob", "Cid"}), "a text of its own"},
      {feature({"", "NA", "?"}), "no record has a value"}};
  for (const auto& [column, why] : useless) {
    EXPECT_EQ(column.use, Use::kLeftOut);
    EXPECT_THAT(column.why, HasSubstr(why));
  }
  EXPECT_EQ(feature({"7", "3", "9"}, "age").use, Use::kNumber) << "different, but no name of an id";
}

TEST(ColumnFacts, NumbersThatNameThingsAreHashed) {
  const ColumnProfile column = feature(repeated({"4711", "12", "9"}, 10), "user_id");
  EXPECT_EQ(column.use, Use::kWords);
  EXPECT_TRUE(column.words.empty());
  EXPECT_EQ(column.distinct, 3);
}

TEST(ColumnFacts, ATargetOfWordsOrOfFewWholeNumbersIsClasses) {
  EXPECT_TRUE(target(repeated({"b", "a"}, 3)).classes);
  const Target digits = target(repeated({"10", "9", "1"}, 20));
  EXPECT_TRUE(digits.classes);
  EXPECT_EQ(digits.column.words, (std::vector<WordCount>{{"1", 20}, {"9", 20}, {"10", 20}}));
  EXPECT_FALSE(target(repeated({"1.5", "2"}, 20)).classes);
  std::vector<std::string> ages;
  for (int i = 0; i < 400; ++i) ages.push_back(std::to_string(i % 70));
  EXPECT_FALSE(target(ages).classes);
  EXPECT_EQ(target(ages).wrong, "");
}

TEST(ColumnFacts, ADecimalCommaIsNoWord) {
  const ColumnProfile column = feature(repeated({"0,5", "1,25", "3"}, 10));
  EXPECT_EQ(column.use, Use::kLeftOut);
  EXPECT_THAT(column.why, HasSubstr("'0,5' has a decimal comma"));
  EXPECT_THAT(target(repeated({"0,5", "1,25"}, 10)).wrong, HasSubstr("decimal comma"));
  EXPECT_EQ(feature(repeated({"a,b", "c"}, 10)).use, Use::kWords);
}

TEST(ColumnFacts, ATargetThatCannotBeLearntSaysWhy) {
  EXPECT_THAT(target({"a", "a", ""}).wrong, HasSubstr("every record has 'a'"));
  EXPECT_THAT(target({"", ""}).wrong, HasSubstr("no record has a value"));
  EXPECT_THAT(target({"a", "b", "c"}).wrong, HasSubstr("3 different words in 3 records"));
  EXPECT_THAT(target(repeated({"\xff", "b"}, 3)).wrong, HasSubstr("UTF-8"));
}

}  // namespace
}  // namespace dtf::launcher
