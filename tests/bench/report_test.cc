#include "tests/bench/report.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/base/json.h"

namespace dtf::bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
using Texts = std::vector<std::string>;

TEST(Report, RowsBelowTheirGoalAreNamedWithBothNumbers) {
  Report report("64 MiB, avx2", {"GB/s", "ratio", "goal"});
  report.add("missed", {1, 0.6, 0.7});
  report.add("met", {1, 0.7, 0.7});
  report.add("beyond", {1, 1.2, 0.7});
  report.add("too", {1, 0.1, 0.75});
  EXPECT_EQ(report.below("ratio", "goal"),
            (Texts{"64 MiB, avx2: missed, 0.60 of 0.70", "64 MiB, avx2: too, 0.10 of 0.75"}));
}

TEST(Report, ARowWithoutANumberOrWithoutAGoalMissesNone) {
  Report report("baseline", {"ratio", "goal"});
  report.add("no goal", {0.1, kNone});
  report.add("not measured", {kNone, 0.7});
  EXPECT_EQ(report.below("ratio", "goal"), Texts{});
}

TEST(Report, OneWithoutSuchColumnsJudgesNothing) {
  Report no_goal("rpc", {"ratio"}), nothing("idle", {"percent"});
  no_goal.add("pull", {0.1});
  nothing.add("psd", {0.1});
  EXPECT_EQ(no_goal.below("ratio", "goal"), Texts{});
  EXPECT_EQ(nothing.below("ratio", "goal"), Texts{});
}

TEST(Report, TheTableAndTheJsonLeaveOutWhatThereIsNot) {
  Report report("title", {"ratio", "goal"});
  report.add("row", {1234.5, kNone});
  EXPECT_EQ(report.table(),
            "title                            ratio          goal\n"
            "row                               1234             -\n");
  EXPECT_EQ(report.json(),
            Json::parse(R"({"title": "title", "rows": [{"what": "row", "ratio": 1234.5}]})"));
}

TEST(Report, TheMedianIsTheMiddleOne) {
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(percentile({4, 3, 2, 1, 0}, 100), 4);
  EXPECT_EQ(percentile({4, 3, 2, 1, 0}, 0), 0);
}

}  // namespace
}  // namespace dtf::bench
