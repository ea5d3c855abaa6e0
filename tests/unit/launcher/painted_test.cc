#include "launcher/painted.h"

#include <gtest/gtest.h>

namespace dtf::launcher {
namespace {

const std::string kRed = "\x1b[1;31m", kYellow = "\x1b[1;33m", kOff = "\x1b[0m";

TEST(Painted, TheSeverityOfAMessageHasItsColor) {
  EXPECT_EQ(painted("dtf-launch: error: no file\n"),
            "dtf-launch: " + kRed + "error" + kOff + ": no file\n");
  EXPECT_EQ(painted("job.yaml:4:5: warning: twice: error: once"),
            "job.yaml:4:5: " + kYellow + "warning" + kOff + ": twice: error: once");
  EXPECT_EQ(painted("error: first"), kRed + "error" + kOff + ": first");
}

TEST(Painted, EachLineHasItsOwn) {
  EXPECT_EQ(painted("a: error: b\n  | error\n\na: warning: c\n"),
            "a: " + kRed + "error" + kOff + ": b\n  | error\n\na: " + kYellow + "warning" + kOff +
                ": c\n");
}

TEST(Painted, ALogLineOfATaskHasItBehindItsTime) {
  EXPECT_EQ(painted("10:11:12.345 warning event=x"),
            "10:11:12.345 " + kYellow + "warning" + kOff + " event=x");
  EXPECT_EQ(painted("10:11:12.345 info event=warning"), "10:11:12.345 info event=warning");
}

TEST(Painted, WordsInAMessageStayAsTheyAre) {
  for (const char* text : {"", "\n", "0 errors: none", "the error: x", "an error", "error"})
    EXPECT_EQ(painted(text), text);
}

}  // namespace
}  // namespace dtf::launcher
