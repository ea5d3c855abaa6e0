// Reports of an agent.

#include <gtest/gtest.h>

#include <csignal>

#include "launcher/ssh/frames.h"
#include "tests/unit/launcher/ssh/round_trip.h"

namespace dtf::launcher {
namespace {

TEST(Reports, ReportsArriveWhole) {
  const TaskId ps{JobKind::kPs, 1};
  EXPECT_EQ(told(ListeningReport{{{ps, 40123}}, "ab"}).ports.at(ps), 40123);
  const FailedReport failed = told(FailedReport{3, ErrorCode::kPermission, "no"});
  EXPECT_EQ(failed.task, 3u);
  EXPECT_EQ(failed.code, ErrorCode::kPermission);
  EXPECT_EQ(failed.message, "no");
  EXPECT_EQ(told(FailedReport{}).task, std::nullopt);
  EXPECT_EQ(told(StartedReport{9}).task, 9u);
  EXPECT_EQ(told(ExitedReport{9, {0, SIGKILL, true}}).status, (ExitStatus{0, SIGKILL, true}));
  EXPECT_EQ(told(ExitedReport{9, {65, 0}}).status, (ExitStatus{65, 0}));
  const FetchedReport fetched = told(FetchedReport{FetchedReport::Found::kSame, 7});
  EXPECT_EQ(fetched.found, FetchedReport::Found::kSame);
  EXPECT_EQ(fetched.bytes, 7u);
  EXPECT_THROW(parseReport(R"({"report":"fetched","found":"perhaps","bytes":1})"), Error);
  EXPECT_EQ(told(AliveReport{{1, 4}}).suspended, (std::vector<size_t>{1, 4}));
}

TEST(Reports, ALongReasonIsCutForAFrameToHoldIt) {
  EXPECT_LE(
      reportJson(FailedReport{{}, ErrorCode::kUnavailable, std::string(1 << 20, '\x01')}).size(),
      kReportBytesMax - 1);
}

}  // namespace
}  // namespace dtf::launcher
