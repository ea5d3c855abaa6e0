#include "common/base/text_table.h"

#include <gtest/gtest.h>

namespace dtf {

TEST(TextTable, AlignsColumnsAndPadsNoLineAtItsEnd) {
  EXPECT_EQ(alignedText({{"ID", "JOB", "STATE"}, {"1", "digits", "done"}, {"22"}, {"3", "", ""}}),
            "ID  JOB     STATE\n"
            "1   digits  done\n"
            "22\n"
            "3\n");
  EXPECT_EQ(alignedText({}), "");
}

TEST(TextTable, ACellIsOneLine) {
  EXPECT_EQ(alignedText({{"a\nb\x1b[2J", "c"}}), "a b?[2J  c\n");
}

}  // namespace dtf
