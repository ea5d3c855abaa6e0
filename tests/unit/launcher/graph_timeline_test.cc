#include "launcher/graph_timeline.h"
#include "common/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "tests/support/process.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::launcher {
namespace {

namespace fs = std::filesystem;
using graph::testing::errorText;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class GraphTimelineTest : public ::testing::Test {
 protected:
  const dtf::testing::TemporaryFolder folder_;
  const std::string file_ = folder_.path() + "/timeline.json";
  const std::vector<trace::TaskTrace> traces_ = {
      {.task = {JobKind::kPs, 0}, .tracks = {}, .spans = {}, .is_given = false}};
};

TEST_F(GraphTimelineTest, TheSecondStepIsWantedWhereThereIsOne) {
  EXPECT_TRUE(GraphTimeline(file_, {}, 10).wants(2));
  EXPECT_FALSE(GraphTimeline(file_, {}, 10).wants(1));
  EXPECT_TRUE(GraphTimeline(file_, {}, 1).wants(1));
  EXPECT_TRUE(GraphTimeline(file_, 10, 10).wants(10));
  EXPECT_EQ(errorText([&] { GraphTimeline(file_, 11, 10); }),
            file_ + ": error: --timeline-step 11: the graph has the steps 1 to 10");
  EXPECT_FALSE(fs::exists(file_)) << "nothing was recorded";
}

TEST_F(GraphTimelineTest, WhereNoFileCanBeIsSaidBeforeAnythingRuns) {
  const std::string nowhere = folder_.path() + "/no/timeline.json";
  EXPECT_THAT(errorText([&] { GraphTimeline(nowhere, {}, 10); }),
              StartsWith(nowhere + ": error: there is no folder " + folder_.path() + "/no"));
  EXPECT_FALSE(fs::exists(folder_.path() + "/no"));
  EXPECT_THAT(errorText([&] { GraphTimeline(folder_.path(), {}, 10); }),
              StartsWith(folder_.path() + ": error: "));
  EXPECT_THAT(errorText([&] { GraphTimeline(folder_.path() + "/", {}, 10); }),
              HasSubstr(": error: "));
}

TEST_F(GraphTimelineTest, WhatGoesWrongLaterIsToldInTheEnd) {
  GraphTimeline timeline(file_, {}, 10);
  fs::create_directories(file_ + "/in its place");
  timeline.write(3, traces_);
  EXPECT_THAT(errorText([&] { timeline.finish(); }), StartsWith(file_ + ": error: cannot write"));
}

TEST_F(GraphTimelineTest, AResumedRunCountsFromItsOwnFirstStep) {
  GraphTimeline timeline(file_, {}, 10);
  timeline.startAfter(4);
  EXPECT_FALSE(timeline.wants(5));
  EXPECT_TRUE(timeline.wants(6));
  EXPECT_TRUE(timeline.wants(7)) << "the values of step 6 were lost";
  timeline.write(7, traces_);
  EXPECT_FALSE(timeline.wants(8)) << "one is enough";
  timeline.finish();
  EXPECT_EQ(Json::parse(readFile(file_, 1 << 20))["otherData"]["step"], 7);
  GraphTimeline last(file_, {}, 10);
  last.startAfter(9);
  EXPECT_TRUE(last.wants(10)) << "the only one";
}

TEST_F(GraphTimelineTest, AFileWithoutAStepIsAnError) {
  GraphTimeline timeline(file_, 3, 10);
  timeline.startAfter(10);
  EXPECT_EQ(errorText([&] { timeline.finish(); }),
            file_ +
                ": error: no step was recorded: the run has ended before step 13, and 'steps' "
                "is 10; raise it, or start anew with --fresh");
}

TEST_F(GraphTimelineTest, TheFileOfAnEarlierRunIsReplaced) {
  atomicReplace(file_, "old");
  GraphTimeline timeline(file_, 3, 10);
  EXPECT_EQ(readFile(file_, 100), "old") << "until there is another";
  timeline.write(3, traces_);
  timeline.finish();
  const auto written = Json::parse(readFile(file_, 1 << 20));
  EXPECT_EQ(written["otherData"]["step"], 3);
}

}  // namespace
}  // namespace dtf::launcher
