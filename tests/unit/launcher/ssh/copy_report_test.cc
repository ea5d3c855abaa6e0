#include "launcher/ssh/copy_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtf::launcher {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class CopyReportTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  std::vector<std::string> said_;
  CopyReport report_{clock_, [this](const std::string& text) { said_.push_back(text); }};
};

TEST_F(CopyReportTest, ALongCopyIsToldEveryFewSecondsAndAtItsEnd) {
  CopyTotals totals;
  totals.add({0, 0});
  totals.add({30 * kMiB, 0});
  totals.add({10 * kMiB, 10 * kMiB});
  report_.copies(totals, false);
  EXPECT_THAT(said_, IsEmpty());
  clock_.advance(CopyReport::kEvery);
  report_.copies(totals, false);
  report_.copies(totals, false);
  totals.stored_bytes = 40 * kMiB;
  clock_.advance(CopyReport::kEvery);
  report_.copies(totals, true);
  report_.copies(totals, true);
  EXPECT_THAT(said_, ElementsAre("copying to 2 hosts: 10.0 MiB of 40.0 MiB (25 %), 2.0 MiB/s",
                                 "copied 40.0 MiB to 2 hosts in 10.0 s (4.0 MiB/s)"));
}

TEST_F(CopyReportTest, NothingToCopyIsSaidOnce) {
  report_.copies({}, false);
  report_.copies({}, true);
  report_.copies({}, true);
  EXPECT_THAT(said_, ElementsAre("nothing to copy: every host has all files"));
}

TEST_F(CopyReportTest, DigestsThatTakeLongAreToldOf) {
  report_.digests(0, 10 * kMiB);
  clock_.advance(CopyReport::kEvery);
  report_.digests(5 * kMiB, 10 * kMiB);
  EXPECT_THAT(said_,
              ElementsAre("reading the files to copy: 5.0 MiB of 10.0 MiB (50 %), 1.0 MiB/s"));
}

}  // namespace dtf::launcher
