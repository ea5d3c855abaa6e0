#include "launcher/init/column_facts.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
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

// They would take 200 MB.
TEST(ColumnFacts, TwoMillionWordsAreCountedInAFixedMemory) {
  constexpr int64_t kWords = 2'000'000;
  ColumnFacts facts;
  size_t most = 0;
  for (int64_t i = 0; i < kWords; ++i) {
    facts.add(std::to_string(i) + " words");
    most = std::max(most, facts.wordBytes());
  }
  EXPECT_LT(most, size_t{4} << 20);
  EXPECT_EQ(facts.wordBytes(), 0u);
  ColumnProfile column;
  facts.judgeFeature(column);
  EXPECT_TRUE(column.many);
  EXPECT_NEAR(static_cast<double>(column.distinct), kWords, 0.1 * kWords);
  EXPECT_EQ(column.use, Use::kLeftOut);
  EXPECT_THAT(column.why, HasSubstr("nearly every record has a text of its own"));
}

TEST(ColumnFacts, ManyWordsOfWhichEachComesAgainAreHashed) {
  ColumnFacts facts;
  for (int i = 0; i < 120'000; ++i) facts.add("word " + std::to_string(i % 30'000));
  ColumnProfile column;
  facts.judgeFeature(column);
  EXPECT_TRUE(column.many);
  EXPECT_EQ(column.use, Use::kWords);
  EXPECT_NEAR(static_cast<double>(column.distinct), 30'000, 3000);
  EXPECT_TRUE(column.words.empty());
}

TEST(ColumnFacts, ManyIdsOfWhichEachComesAgainAreHashed) {
  ColumnFacts facts;
  for (int64_t i = 0; i < 200'000; ++i) facts.add(std::to_string(i * 7 % 50'000));
  ColumnProfile column;
  column.name = "user_id";
  facts.judgeFeature(column);
  EXPECT_EQ(column.use, Use::kWords) << column.why;
}

TEST(ColumnFacts, ALongTextIsNotKept) {
  ColumnFacts facts;
  for (int i = 0; i < 4; ++i) facts.add(i % 2 == 0 ? std::string(100'000, 'a') : "b");
  EXPECT_EQ(facts.wordBytes(), 0u);
  ColumnProfile column;
  facts.judgeFeature(column);
  EXPECT_EQ(column.distinct, 2);
  EXPECT_TRUE(column.words.empty());
}

TEST(DistinctWords, AreExactWhereTheyAreFewAndNearlyWhereTheyAreMany) {
  DistinctWords words;
  for (int i = 0; i < 3000; ++i) words.add(std::to_string(i % 1000));
  EXPECT_EQ(words.count(), 1000);
  for (int i = 0; i < 100'000; ++i) words.add(std::to_string(i));
  EXPECT_NEAR(static_cast<double>(words.count()), 100'000, 10'000);
}

TEST(DistinctWords, ASmallSampleIsAnEstimateSooner) {
  DistinctWords words(50);
  for (int i = 0; i < 50; ++i) words.add(std::to_string(i));
  EXPECT_EQ(words.count(), 50);
  for (int i = 0; i < 1000; ++i) words.add(std::to_string(i));
  EXPECT_NEAR(static_cast<double>(words.count()), 1000, 400);
  EXPECT_EQ(words.count() % 16, 0) << "a sample of 50 counts only each 16th word, or fewer";
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

TEST(ColumnFacts, DaysAreToldFromOtherWords) {
  for (const char* field : {"2024-03-31", "2024-3-1", "2024-03-31T08:15:00Z", "2024-03-31 08:15",
                            "31.3.2024", "31.03.2024 08:15", "3/31/2024", "2024/03/31"})
    EXPECT_TRUE(isDate(field)) << field;
  for (const char* field :
       {"", "2024", "2024-03", "1.2.3", "10.20.30", "192.168.1.1", "2024-13-32", "555-12-3456",
        "2024-03.31", "-2024-03-31", "2024-03-31x", "2024-03-31T", "a-b-c", "12.5"})
    EXPECT_FALSE(isDate(field)) << field;
}

TEST(ColumnFacts, DatesAreLeftOutUnlessTheyAreToBeWords) {
  const std::vector<std::string> days = repeated({"2024-03-31", "2024-04-01", ""}, 20);
  EXPECT_EQ(feature(days).use, Use::kLeftOut);
  EXPECT_THAT(feature(days).why, HasSubstr("dates, which dtf has no reader for"));
  ColumnProfile column;
  factsOf(days).judgeFeature(column, true);
  EXPECT_EQ(column.use, Use::kWords);
  EXPECT_TRUE(column.dates);
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

TEST(ColumnFacts, NoneIsAClassAmongWords) {
  std::vector<std::string> fields = repeated({"apnea", "insomnia", ""}, 10);
  fields.emplace_back("None");
  const Target found = target(fields);
  EXPECT_EQ(found.wrong, "");
  EXPECT_EQ(found.column.words,
            (std::vector<WordCount>{{"None", 1}, {"apnea", 10}, {"insomnia", 10}}));
  EXPECT_EQ(found.column.missing, 10) << "the empty fields";
  EXPECT_EQ(found.column.doubtful_classes, (std::vector<WordCount>{{"None", 1}}));
  EXPECT_EQ(target({"none", "rust", "none", "rust"}).column.words.size(), 2u);
}

TEST(ColumnFacts, OtherMarkersAreClassesWhereTheyAreNearlyAsFrequent) {
  std::vector<std::string> fields = repeated({"EU", "AS", "NA"}, 10);
  EXPECT_EQ(target(fields).column.words.size(), 3u) << "North America";
  fields.insert(fields.end(), {"EU", "AS", "EU", "AS"});
  EXPECT_EQ(target(fields).column.words.size(), 3u) << "though it is the rarest";
  fields = repeated({"yes", "no"}, 10);
  for (const char* gap : {"NA", "null", "NaN", "?"}) fields.emplace_back(gap);
  const Target gaps = target(fields);
  EXPECT_EQ(gaps.column.words.size(), 2u);
  EXPECT_EQ(gaps.column.missing, 4);
  EXPECT_EQ(gaps.column.doubtful_gaps, (std::vector<WordCount>{{"NA", 1}, {"null", 1}}));
}

TEST(ColumnFacts, AmongNumbersAMarkerIsAGap) {
  std::vector<std::string> fields = repeated({"0", "1"}, 20);
  fields.emplace_back("None");
  EXPECT_EQ(target(fields).column.words.size(), 2u);
  EXPECT_EQ(target(fields).column.missing, 1);
  fields = repeated({"1.5", "2.25", "none"}, 20);
  EXPECT_FALSE(target(fields).classes);
  EXPECT_EQ(target(fields).column.missing, 20);
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
