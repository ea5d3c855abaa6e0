#include "common/base/text.h"

#include <gtest/gtest.h>

namespace dtf {

TEST(NearestWord, FindsMisspellingsOnly) {
  const std::string_view keys[] = {"ps", "worker", "run_dir", "learning_rate"};
  EXPECT_EQ(nearestWord("wrokers", keys), "worker");
  EXPECT_EQ(nearestWord("learning_rat", keys), "learning_rate");
  EXPECT_EQ(nearestWord("banana", keys), "");
}

TEST(Text, SplitAndJoinAreInverse) {
  const std::vector<std::string> parts = split("a:1,,b:2", ',');
  EXPECT_EQ(parts, (std::vector<std::string>{"a:1", "", "b:2"}));
  EXPECT_EQ(join(parts, ","), "a:1,,b:2");
}

}  // namespace dtf
