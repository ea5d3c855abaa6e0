#include "launcher/line_splitter.h"

#include <gtest/gtest.h>

#include <vector>

namespace dtf::launcher {

class LineSplitterTest : public ::testing::Test {
 protected:
  std::vector<std::string> lines_;
  LineSplitter splitter_{8, [this](std::string_view line, bool cut) {
                           lines_.push_back(std::string(line) + (cut ? "!" : ""));
                         }};
};

TEST_F(LineSplitterTest, JoinsPartsAndSplitsLines) {
  for (const char* part : {"a", "b\nc", "d\n\ne\n", "f"}) splitter_.feed(part);
  EXPECT_EQ(lines_, (std::vector<std::string>{"ab", "cd", "", "e"}));
  splitter_.flush();
  EXPECT_EQ(lines_.back(), "f");
  splitter_.flush();
  EXPECT_EQ(lines_.size(), 5u);
}

TEST_F(LineSplitterTest, CutsWhatIsTooLongAndGoesOn) {
  splitter_.feed("12345678\n123456789\n1234");
  splitter_.feed("567890\nshort\r\n");
  EXPECT_EQ(lines_, (std::vector<std::string>{"12345678", "12345678!", "12345678!", "short"}));
}

}  // namespace dtf::launcher
