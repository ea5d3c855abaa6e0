#include "common/base/log.h"

#include <gtest/gtest.h>

#include <regex>

namespace dtf::log {

TEST(Log, LineCarriesTaskLevelAndText) {
  ::testing::internal::CaptureStderr();
  init("worker/1", Level::kInfo);
  info("event=ready port={}", 2223);
  debug("event=hidden");
  warning("event=slow");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("info task=worker/1 event=ready port=2223\n"), std::string::npos) << text;
  EXPECT_NE(text.find("warning task=worker/1 event=slow\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("hidden"), std::string::npos) << text;
  const std::regex time(R"(^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d info )");
  EXPECT_TRUE(std::regex_search(text, time)) << "date and zone: " << text;
}

TEST(Log, AToolSaysItAsAMessage) {
  ::testing::internal::CaptureStderr();
  initForTool("dtf-launch");
  info("event=images folder=\"a\" classes={}", 3);
  warning("event=files_left_out files=1 reason=\"two\nlines\"");
  warning("event=slow");
  init("", Level::kInfo);
  info("event=back");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(
      text.starts_with("dtf-launch: images: folder=\"a\" classes=3\n"
                       "dtf-launch: warning: files left out: files=1 reason=\"two\n"
                       "  lines\"\n"
                       "dtf-launch: warning: slow\n"))
      << text;
  EXPECT_TRUE(text.ends_with(" info event=back\n")) << text;
}

TEST(Log, ParsesLevels) {
  Level level = Level::kInfo;
  EXPECT_TRUE(parseLevel("debug", level));
  EXPECT_EQ(level, Level::kDebug);
  EXPECT_FALSE(parseLevel("loud", level));
}

}  // namespace dtf::log
