#include "common/data/other_words.h"

#include <gtest/gtest.h>

#include <vector>

namespace dtf::data {
namespace {

TEST(OtherWords, AreNamedWithTheirColumnTheirNumberAndTheFirst) {
  EXPECT_EQ(otherWordsText({"plan", 2, "gold", "new.csv:4:7"}),
            "2 words in column 'plan' are not of its vocabulary_list (first: 'gold' in "
            "new.csv:4:7): they take the row for other words");
  EXPECT_EQ(otherWordsText({"plan", 1, "gold", "new.csv:4:7"}),
            "1 word in column 'plan' is not of its vocabulary_list ('gold' in new.csv:4:7): it "
            "takes the row for other words");
}

TEST(OtherWords, OfAllColumnsAreCounted) {
  EXPECT_EQ(countOf({}), 0);
  const std::vector<OtherWords> columns = {{"plan", 2, "gold", "a"}, {"country", 3, "JP", "b"}};
  EXPECT_EQ(countOf(columns), 5);
}

// A word comes from a file, and the text goes to a terminal.
TEST(OtherWords, AreEscaped) {
  EXPECT_EQ(otherWordsText({"plan", 1, "\x1b[31m", "a"}).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace dtf::data
