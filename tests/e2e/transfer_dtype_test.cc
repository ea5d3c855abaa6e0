// replication.transfer_dtype: bfloat16. Real processes, real kill -9.

#include <gmock/gmock.h>

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TransferDtypeTest : public RecoveryTest {
 protected:
  static ClusterOptions narrow(const std::string& mode) {
    ClusterOptions options;
    options.mode = mode;
    options.replication_more = ", transfer_dtype: bfloat16";
    return options;
  }
};

TEST_F(TransferDtypeTest, ASyncJobRepeatsToTheBitAndIsNotThatOfFloat32) {
  for (const std::string name : {"first", "again"})
    ASSERT_EQ(launch(writeCluster(narrow("sync"), name)).exit_code, 0);
  ClusterOptions wide = narrow("sync");
  wide.replication_more.clear();
  ASSERT_EQ(launch(writeCluster(wide, "wide")).exit_code, 0);
  EXPECT_EQ(digestOf("again"), digestOf("first"));
  EXPECT_NE(digestOf("wide"), digestOf("first"));
  const double loss = summary("first")["eval"].doubleAt("loss");
  const double wide_loss = summary("wide")["eval"].doubleAt("loss");
  EXPECT_NEAR(loss, wide_loss, 0.02 * wide_loss) << "rounding is no more than that";
  EXPECT_THAT(folder_.read("runs/first/logs/worker-0.1.log"), Not(HasSubstr("event=memory_shared")))
      << "the numbers don't depend on which host a task is on";
  expectNothingLeft();
}

// Gradients of 11.6 MB, sent as 5.8 MB: whole, and while they are computed.
TEST_F(TransferDtypeTest, AGradientThatLeavesWhileItIsComputedHasTheSameBits) {
  ClusterOptions options = narrow("sync");
  options.ps = 1;
  options.layers =
      "[flatten: , dense: {units: 1600, activation: relu}, dense: {units: 1024, activation: relu}, "
      "dense: {units: 10}]";
  ASSERT_EQ(launch(writeCluster(options, "streamed")).exit_code, 0);
  options.top_more = "stream_gradients: false\n";
  ASSERT_EQ(launch(writeCluster(options, "whole")).exit_code, 0);
  EXPECT_EQ(digestOf("streamed"), digestOf("whole"));
  EXPECT_THAT(folder_.read("runs/streamed/logs/worker-0.1.log"),
              HasSubstr("event=gradients_streamed"));
  EXPECT_THAT(folder_.read("runs/whole/logs/worker-0.1.log"),
              Not(HasSubstr("event=gradients_streamed")));
}

TEST_F(TransferDtypeTest, LostWorkersAndAPsAreReplacedAndAllStepsAreDone) {
  expectLossesToCostTimeAlone(narrow("async"));
}

// Checkpoints are not rounded: a resumed job has the bits of one that was never stopped.
TEST_F(TransferDtypeTest, AResumedJobHasTheBitsOfOneThatWasNotStopped) {
  ClusterOptions options = narrow("sync");
  options.optimizer = "{momentum: {learning_rate: 0.05, momentum: 0.9}}";
  options.steps = 40;
  ASSERT_EQ(launch(writeCluster(options, "unbroken")).exit_code, 0);
  options.steps = 17;
  ASSERT_EQ(launch(writeCluster(options, "resumed")).exit_code, 0);
  EXPECT_NE(digestOf("resumed"), digestOf("unbroken"));
  options.steps = 40;
  ASSERT_EQ(launch(writeCluster(options, "resumed")).exit_code, 0);
  EXPECT_EQ(digestOf("resumed"), digestOf("unbroken"));
}

}  // namespace
}  // namespace dtf::testing
