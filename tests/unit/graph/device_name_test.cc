#include "common/graph/device_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using testing::errorText;
using ::testing::HasSubstr;

std::string parsed(std::string_view text) {
  return DeviceName::parse(text).str();
}

std::string merged(std::string_view outer, std::string_view inner) {
  return DeviceName::parse(outer).mergedWith(DeviceName::parse(inner)).str();
}

TEST(DeviceName, ReadsWhatItWrites) {
  for (const char* text : {"", "/job:ps", "/job:ps/task:1", "/job:ps/replica:0/task:1/device:CPU:0",
                           "/task:7", "/device:GPU", "/device:GPU:3"}) {
    EXPECT_EQ(parsed(text), text);
  }
}

TEST(DeviceName, AcceptsShortFormsAnyOrderAndStars) {
  EXPECT_EQ(parsed("/job:worker/task:0/gpu:1"), "/job:worker/task:0/device:GPU:1");
  EXPECT_EQ(parsed("/CPU:0"), "/device:CPU:0");
  EXPECT_EQ(parsed("/device:gpu:0/job:worker"), "/job:worker/device:GPU:0");
  EXPECT_EQ(parsed("/job:*/task:3/device:GPU:*"), "/task:3/device:GPU");
}

TEST(DeviceName, ReadsAJobInAnyCase) {
  EXPECT_EQ(parsed("/job:PS/task:1"), "/job:ps/task:1");
  EXPECT_EQ(parsed("/job:Worker/cpu:0"), "/job:worker/device:CPU:0");
  EXPECT_EQ(DeviceName::parse("/job:WORKER/task:2").taskId(), (TaskId{JobKind::kWorker, 2}));
}

TEST(DeviceName, AVariableOfAJobIsOnTheCpuOfATask) {
  for (const char* text : {"/job:ps/task:1", "/job:PS/task:1",
                           "/job:ps/replica:0/task:1/device:CPU:0", "/task:1/job:ps/cpu:0"})
    EXPECT_EQ(variableTask(text), (TaskId{JobKind::kPs, 1})) << text;
  EXPECT_EQ(variableTask("/job:worker/task:0"), (TaskId{JobKind::kWorker, 0}));
  for (const char* text : {"", "/job:ps", "/job:ps/task:1/gpu:0", "/job:ps/task:1/cpu:1",
                           "/job:ps/replica:1/task:1", "/job:moon/task:0", "ps/1"})
    EXPECT_EQ(variableTask(text), std::nullopt) << text;
}

TEST(DeviceName, MergesFieldByFieldInnermostFirst) {
  EXPECT_EQ(merged("/job:worker/task:0", "/gpu:1"), "/job:worker/task:0/device:GPU:1");
  EXPECT_EQ(merged("/job:worker/task:0/device:GPU:1", "/job:ps"), "/job:ps/task:0/device:GPU:1");
  EXPECT_EQ(merged("/job:ps", "/task:1"), "/job:ps/task:1");
  EXPECT_EQ(merged("", "/job:ps/task:1"), "/job:ps/task:1");
  EXPECT_EQ(merged("/job:ps/task:1", ""), "/job:ps/task:1");
}

TEST(DeviceName, RefusesWhatItDoesNotUnderstand) {
  for (const char* text :
       {"job:ps", "/", "/job", "/job:", "/job:ps/task:x", "/task:-1", "/task:1:2",
        "/job:ps/job:worker", "/tpu:0", "/job:p s", "/device:GPU:0:1", "/task:99999999999",
        "/job:ps//task:0", "/gpu:0/cpu:0"}) {
    EXPECT_THAT(errorText([text] { DeviceName::parse(text); }),
                HasSubstr(std::string("'") + text + "'"));
  }
}

TEST(DeviceName, KnowsItsTask) {
  EXPECT_EQ(DeviceName::parse("/job:worker/task:2/gpu:0").taskId(), (TaskId{JobKind::kWorker, 2}));
  EXPECT_EQ(DeviceName::parse("/job:ps").taskId(), std::nullopt);
  EXPECT_THROW(DeviceName::parse("/job:moon/task:0").taskId(), Error);
  EXPECT_EQ(fullDevice({JobKind::kPs, 1}).str(), "/job:ps/replica:0/task:1/device:CPU:0");
}

}  // namespace
}  // namespace dtf::graph
