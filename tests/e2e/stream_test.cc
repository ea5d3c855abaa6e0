// stream_gradients: a gradient leaves while the rest of it is computed. Real processes, real kill
// -9.

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "common/base/json.h"
#include "tests/e2e/recovery_fixture.h"
#include "tests/e2e/timeline.h"

namespace dtf::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kStreamed = "event=gradients_streamed";

class StreamTest : public RecoveryTest {
 protected:
  // A model of 7.4 MB, through sockets.
  static ClusterOptions wide(const std::string& mode) {
    ClusterOptions options;
    options.ps = 1;
    options.mode = mode;
    options.layers =
        "[flatten: , dense: {units: 1024, activation: relu}, dense: {units: 1024, activation: "
        "relu}, "
        "dense: {units: 10}]";
    options.optimizer = "{adam: {learning_rate: 0.001}}";
    options.top_more = "shared_memory: false\n";
    return options;
  }
};

TEST_F(StreamTest, AJobHasTheBitsOfOneWhoseGradientsLeaveWhole) {
  ClusterOptions options = wide("sync");
  ASSERT_EQ(launch(writeCluster(options, "streamed")).exit_code, 0);
  options.top_more += "stream_gradients: false\n";
  ASSERT_EQ(launch(writeCluster(options, "whole")).exit_code, 0);
  EXPECT_EQ(digestOf("streamed"), digestOf("whole"));
  for (const std::string task : {"worker-0", "worker-1"}) {
    EXPECT_THAT(folder_.read("runs/streamed/logs/" + task + ".1.log"), HasSubstr(kStreamed));
    EXPECT_THAT(folder_.read("runs/whole/logs/" + task + ".1.log"), Not(HasSubstr(kStreamed)));
  }
  expectNothingLeft();
}

// The timeline shows it.
TEST_F(StreamTest, ThePushBeginsWhileTheGradientIsComputed) {
  ClusterOptions options = wide("sync");
  options.workers = 1;
  options.worker_more = ", threads: 1";  // leaves a core to the sending thread
  options.batch_size = 100;
  for (const bool streams : {true, false}) {
    options.train_more = "  summaries: {timeline_step: 20}\n";
    options.top_more =
        std::string("shared_memory: false\nstream_gradients: ") + (streams ? "true\n" : "false\n");
    ASSERT_EQ(launch(writeCluster(options)).exit_code, 0);
    const auto timeline = Json::parse(folder_.read("runs/job/timeline/worker-0.json"));
    const std::vector<Span> pushes = spansOf(timeline, "push, wait, receive");
    const std::vector<Span> batches = spansOf(timeline, "compute");
    ASSERT_EQ(pushes.size(), 1u) << timeline;
    ASSERT_EQ(batches.size(), 1u) << timeline;
    EXPECT_EQ(pushes[0].begin < batches[0].end, streams) << timeline;
    EXPECT_GT(pushes[0].end, batches[0].end);
  }
}

// A gradient may be on its way at any of these moments.
TEST_F(StreamTest, LostTasksAreReplacedAndNoBitIsLost) {
  ClusterOptions options = wide("sync");
  options.ps = 2;
  options.layers =
      "[flatten: , dense: {units: 1500, activation: relu}, dense: {units: 1024, activation: relu}, "
      "dense: {units: 10}]";
  options.steps = 250;
  options.train_more = "  report: {every_steps: 5}\n";
  options.top_more += "durability: replica\n";
  ASSERT_EQ(launch(writeCluster(options, "calm"), {}, kEnd).exit_code, 0);
  start(options, "disturbed");
  killAndStartAgain(1, 20);
  loseAndStartAgain({1}, 60);
  killAndStartAgain(0, 110);
  awaitEnd();
  EXPECT_EQ(summary("disturbed")["global_step"], options.steps);
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

// The job ends with the divergence as its reason, not with the push that it interrupted.
TEST_F(StreamTest, ALossThatIsNoNumberEndsTheJobWithItsReason) {
  ClusterOptions options = wide("async");
  options.optimizer = "{gradient_descent: {learning_rate: 1000000}}";
  const ProcessResult result = launch(writeCluster(options));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("training has diverged")) << result.err;
  expectNobodyLeft();
}

}  // namespace
}  // namespace dtf::testing
