#include "common/base/job_summary.h"
#include "common/base/json.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf {
namespace {

const JobEnd kFailed{"mnist", "failed", 65, 3.14159, {{"worker/0", 65, "it was too eager"}}};

TEST(JobSummary, WhatTheChiefDoesNotTellIsNull) {
  Json json = summaryJson(kFailed, Json::object());
  EXPECT_EQ(json["ended"].asString().size(), 29u) << json["ended"];
  json.erase("ended");
  EXPECT_EQ(json.dump(),
            R"({"schema":1,"job":"mnist","outcome":"failed","global_step":null,"final_loss":null,)"
            R"("examples_per_second":null,"steps_per_second":null,"eval":{},)"
            R"("exit_code":65,"wall_seconds":3.142,"tasks":[{"name":"worker/0","exit_code":65,)"
            R"("restarts":0,"cause":"it was too eager"}]})");
}

TEST(JobSummary, WhatTheChiefAddsIsPassedOnAndTheWriterKnowsBetterHowItEnded) {
  const Json json = summaryJson(kFailed, {{"job", "other"},
                                          {"outcome", "done"},
                                          {"global_step", 7},
                                          {"wall_seconds", 9},
                                          {"more", 1}});
  EXPECT_EQ(json["job"], "mnist");
  EXPECT_EQ(json["outcome"], "failed");
  EXPECT_EQ(json["global_step"], 7);
  EXPECT_EQ(json["wall_seconds"], 3.142);
  EXPECT_EQ(json["more"], 1);
}

TEST(JobSummary, IsReplacedAndRemovedWhole) {
  const testing::TemporaryFolder folder;
  writeSummary(folder.path(), {{"step", 1}});
  writeSummary(folder.path(), {{"step", 2}});
  EXPECT_EQ(Json::parse(folder.read("summary.json"))["step"], 2);
  removeSummary(folder.path());
  EXPECT_FALSE(std::filesystem::exists(summaryFile(folder.path())));
  removeSummary(folder.path());  // none is as good
  EXPECT_THROW(writeSummary(folder.path() + "/none", {{"step", 3}}), Error);
}

}  // namespace
}  // namespace dtf
