#include "common/data/left_out_log.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/data/part_of.h"

namespace dtf::data {
namespace {

Dataset leavingOut(std::vector<BadRecord> records, const std::string& source = "t.csv") {
  return {partOf<float>(kFeatures, Shape{1}, {1, 2}, source),
          partOf<int32_t>(kLabels, Shape(), {0, 1}),
          {},
          std::move(records)};
}

// Calls `log.add()`, and returns the lines of the log, without their times.
std::vector<std::string> linesOf(LeftOutLog& log, const Dataset& dataset) {
  ::testing::internal::CaptureStderr();
  log.add(dataset);
  const std::string text = ::testing::internal::GetCapturedStderr();
  std::vector<std::string> lines;
  for (size_t at = 0; (at = text.find("event=", at)) != text.npos; at = text.find('\n', at))
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
}

TEST(LeftOutLog, LogsARecordOnceHoweverManyDataSetsLeaveItOut) {
  LeftOutLog log(log::Level::kWarning);
  EXPECT_EQ(linesOf(log, leavingOut({{1, "t.csv:3:1: x"}, {3, "t.csv:5:1: y"}})),
            (std::vector<std::string>{"event=bad_record reason=\"t.csv:3:1: x\"",
                                      "event=bad_record reason=\"t.csv:5:1: y\"",
                                      "event=bad_records_left_out records=2 of=4 "
                                      "files=\"t.csv\""}));
  EXPECT_TRUE(linesOf(log, leavingOut({{1, "t.csv:3:1: x"}, {3, "t.csv:5:1: y"}})).empty());
  EXPECT_EQ(linesOf(log, leavingOut({{3, "t.csv:5:1: y"}, {4, "t.csv:6:1: z"}})).front(),
            "event=bad_record reason=\"t.csv:6:1: z\"");
  EXPECT_EQ(linesOf(log, leavingOut({{3, "e.csv:5:1: y"}}, "e.csv")).front(),
            "event=bad_record reason=\"e.csv:5:1: y\"");
  EXPECT_TRUE(linesOf(log, leavingOut({})).empty());
}

TEST(LeftOutLog, ReturnsTheReasonsOfTheFirst) {
  std::vector<BadRecord> records;
  for (int i = 0; i < 12; ++i) records.push_back({i, "t.csv:" + std::to_string(i)});
  LeftOutLog log(log::Level::kDebug);
  const LeftOut added = log.add(leavingOut(std::move(records)));
  EXPECT_EQ(added.records, 12u);
  EXPECT_EQ(added.reasons.size(), kBadRecordsShownMax);
  EXPECT_EQ(added.reasons.back(), "t.csv:9");
}

// The reasons of very many records are not kept, and are equal.
TEST(LeftOutLog, RecordsOfOneReasonAllCount) {
  LeftOutLog log(log::Level::kDebug);
  EXPECT_EQ(log.add(leavingOut({{7, "as many before it"}, {8, "as many before it"}})).records, 2u);
}

}  // namespace
}  // namespace dtf::data
