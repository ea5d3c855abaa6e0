#include "common/base/text.h"

#include <gtest/gtest.h>

namespace dtf {

TEST(NearestWord, FindsMisspellingsOnly) {
  const std::string_view keys[] = {"ps", "worker", "run_dir", "learning_rate"};
  EXPECT_EQ(nearestWord("wrokers", keys), "worker");
  EXPECT_EQ(nearestWord("learning_rat", keys), "learning_rate");
  EXPECT_EQ(nearestWord("banana", keys), "");
  EXPECT_EQ(nearestWord("foo", std::vector<std::string_view>{"job", "ps"}), "");
}

TEST(Text, BytesAreReadInUnitsOf1024) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(1023), "1023 B");
  EXPECT_EQ(bytesText(31400), "30.7 KiB");
  EXPECT_EQ(bytesText(uint64_t{1} << 50), "1024.0 TiB");
}

TEST(Text, WhatAPeerWroteBecomesOneHarmlessLine) {
  EXPECT_EQ(printable("a\tb\x1b[31m\x07 \xc3\xa9"), "a\tb?[31m? \xc3\xa9");
  EXPECT_EQ(printable("one\ntwo\r"), "one two?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \xc2\xa9 \xc2"),
            "?31m \xc2\xa9 \xc2")
      << "CSI in UTF-8";
}

TEST(Text, LinesOfSomebodyElseBeginNoLineOfOurs) {
  EXPECT_EQ(printableLines("a\x1b[31m\nb\n"), "a?[31m\nb\n");
  EXPECT_EQ(printableLines("one\ntwo\n  three\n\nfour", "  "), "one\n  two\n  three\n\n  four");
  EXPECT_EQ(printableLines(""), "");
  EXPECT_EQ(printableLines("\n"), "\n");
}

TEST(Text, SplitAndJoinAreInverse) {
  const std::vector<std::string> parts = split("a:1,,b:2", ',');
  EXPECT_EQ(parts, (std::vector<std::string>{"a:1", "", "b:2"}));
  EXPECT_EQ(join(parts, ","), "a:1,,b:2");
}

}  // namespace dtf
