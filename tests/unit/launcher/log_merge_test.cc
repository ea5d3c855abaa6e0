#include "launcher/log_merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {

TEST(LogMerge, TimesOfTwoZonesCompare) {
  EXPECT_EQ(timeOfLine("1970-01-01T00:00:01.250+00:00 info"), 1250);
  EXPECT_EQ(timeOfLine("1970-01-01T01:00:01.250+01:00 info"), 1250);
  EXPECT_EQ(timeOfLine("1969-12-31T16:00:01.250-08:00 info"), 1250);
  EXPECT_EQ(timeOfLine("no time"), std::nullopt);
  EXPECT_EQ(timeOfLine("1970-01-01T00:00:01.250 0000000 x"), std::nullopt);
}

class LogMergeTest : public ::testing::Test {
 protected:
  void append(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() + "/" + name, std::ios::app) << text << std::flush;
  }
  std::string read(bool to_the_end, int64_t until = kAnyTime) {
    std::string text;
    merge_.read(to_the_end, until, [&text](const LogLine& line) {
      text += std::to_string(line.source) + ":" + line.text.substr(20) + "\n";
    });
    return text;
  }
  testing::TemporaryFolder folder_;
  LogMerge merge_;
};

TEST_F(LogMergeTest, LinesOfTwoFilesComeByTimeAndRowsStayWithTheirLine) {
  append("a", "2026-03-01T10:00:01.000+00:00 a1\n");
  append("a", "                    row of a1\n");
  append("a", "2026-03-01T10:00:03.000+00:00 a3\n");
  append("b", "2026-03-01T11:00:02.000+01:00 b2\n");
  for (const char* name : {"a", "b"}) merge_.add(folder_.path() + "/" + name);
  EXPECT_EQ(read(true), "0:000+00:00 a1\n0:row of a1\n1:000+01:00 b2\n0:000+00:00 a3\n");
}

TEST_F(LogMergeTest, ALineWithoutAnEndCostsNoMoreThanItsLimit) {
  append("a", std::string(3 * LogMerge::kLineBytesMax, 'x') + "\nshort\n");
  merge_.add(folder_.path() + "/a");
  size_t longest = 0, all = 0;
  std::string last;
  merge_.read(true, kAnyTime, [&](const LogLine& line) {
    longest = std::max(longest, line.text.size());
    all += line.text.size();
    last = line.text;
  });
  EXPECT_LT(longest, LogMerge::kLineBytesMax + 4096);
  EXPECT_EQ(all, 3 * LogMerge::kLineBytesMax + 5);
  EXPECT_EQ(last, "short");
  EXPECT_THROW(merge_.add("/dev/zero"), Error);
}

TEST_F(LogMergeTest, ALineThatGrowsIsHandedOverOnceWhole) {
  append("a", "2026-03-01T10:00:01.000+00:00 one\n2026-03-01T10:00:02.000+00:00 tw");
  merge_.add(folder_.path() + "/a");
  EXPECT_EQ(read(false), "0:000+00:00 one\n");
  EXPECT_EQ(read(false), "");
  append("a", "o\n2026-03-01T10:00:03.000+00:00 end");
  EXPECT_EQ(read(false), "0:000+00:00 two\n");
  EXPECT_EQ(read(true), "0:000+00:00 end\n") << "the last line of a killed task";
}

// `logs -f` reads them so: a young line waits for older lines of slower writers.
TEST_F(LogMergeTest, FilesThatGrowComeByTimeTooAndSoDoesOneThatIsAddedLater) {
  const auto second = [](int64_t n) {
    return *timeOfLine("2026-03-01T10:00:00.000+00:00") + 1000 * n;
  };
  append("a", "2026-03-01T10:00:01.000+00:00 a1\n2026-03-01T10:00:03.000+00:00 a3\n");
  append("b", "2026-03-01T10:00:02.000+00:00 b2\n");
  for (const char* name : {"a", "b"}) merge_.add(folder_.path() + "/" + name);
  EXPECT_EQ(read(false, second(2)), "0:000+00:00 a1\n");
  append("c", "2026-03-01T10:00:01.500+00:00 c1\n");
  merge_.add(folder_.path() + "/c");
  append("b", "2026-03-01T10:00:02.500+00:00 b3\n2026-03-01T10:00:04.000+00:00 b4\n");
  EXPECT_EQ(read(false, second(4)),
            "2:500+00:00 c1\n1:000+00:00 b2\n1:500+00:00 b3\n0:000+00:00 a3\n");
  EXPECT_EQ(read(false, second(4)), "");
  EXPECT_EQ(read(true, second(4)), "1:000+00:00 b4\n") << "the end is all";
}

TEST_F(LogMergeTest, AFileThatIsNotThereIsNamed) {
  EXPECT_THROW(merge_.add(folder_.path() + "/none"), Error);
}

}  // namespace dtf::launcher
