// replication.transfer with error feedback: int8, top_k. Real processes, real kill -9.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kForms = {"{dtype: int8}", "{top_k: 0.05}"};

class LossyTransferTest : public RecoveryTest {
 protected:
  static ClusterOptions sending(const std::string& form, const std::string& mode) {
    ClusterOptions options;
    options.mode = mode;
    options.replication_more = form.empty() ? "" : ", transfer: " + form;
    options.layers = "[flatten: , dense: {units: 64, activation: relu}, dense: {units: 10}]";
    return options;
  }
  void launchAs(const ClusterOptions& options, const std::string& name) {
    const ProcessResult result = launch(writeCluster(options, name));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    ASSERT_NE(digestOf(name), "");
  }
  double lossOf(const std::string& name) { return summary(name)["eval"].doubleAt("loss"); }
};

TEST_F(LossyTransferTest, ASyncJobRepeatsToTheBitHoweverItsVariablesAreCut) {
  launchAs(sending("", "sync"), "float32");
  for (const std::string& form : kForms) {
    ClusterOptions options = sending(form, "sync");
    options.ps = 1;
    launchAs(options, "one");
    EXPECT_NE(digestOf("one"), digestOf("float32")) << form;
    EXPECT_NEAR(lossOf("one"), lossOf("float32"), 0.2 * lossOf("float32")) << form;
    EXPECT_THAT(folder_.read("runs/one/logs/worker-0.1.log"), Not(HasSubstr("event=memory_shared")))
        << "the numbers don't depend on which host a task is on";
    options.ps = 2;
    launchAs(options, "two");
    EXPECT_EQ(digestOf("two"), digestOf("one")) << form;
    options.top_more = "stream_gradients: false\n";
    launchAs(options, "whole");
    EXPECT_EQ(digestOf("whole"), digestOf("one")) << form;
    options.top_more.clear();
    options.ps = 0;
    launchAs(options, "none");
    EXPECT_EQ(digestOf("none"), digestOf("one")) << form << ", without ps";
  }
  expectNothingLeft();
}

// Rows of tables are float32; the dense variables beside them are not.
TEST_F(LossyTransferTest, TablesAndDenseVariablesGiveTheSameBitsOnPsAndHybrid) {
  ClusterOptions options = sending("{dtype: int8}", "sync");
  options.batch_size = 4;
  options.optimizer = "{adam: {learning_rate: 0.01}}";
  options.layers =
      "[embedding: {input_dim: 3000, output_dim: 4}, flatten: , dense: {units: 10, name: softmax}]";
  launchAs(options, "on-ps");
  options.train_more = "  placement: {strategy: hybrid}\n";
  launchAs(options, "hybrid");
  EXPECT_EQ(digestOf("hybrid"), digestOf("on-ps"));
}

TEST_F(LossyTransferTest, LostTasksOfAnAsyncJobAreReplacedAndAllStepsAreDone) {
  expectLossesToCostTimeAlone(sending("{top_k: 0.05}", "async"));
}

TEST_F(LossyTransferTest, LostTasksOfASyncJobAreReplacedAndAllStepsAreDone) {
  expectLossesToCostTimeAlone(sending("{dtype: int8}", "sync"));
}

TEST_F(LossyTransferTest, OverlappedAndBoundedJobsLearnAsWell) {
  launchAs(sending("", "async"), "float32");
  for (const std::string more : {", overlap: true", ", staleness: 2"}) {
    ClusterOptions options =
        sending("{dtype: int8}", more == ", staleness: 2" ? "bounded" : "async");
    options.replication_more += more;
    launchAs(options, "lossy");
    EXPECT_NEAR(lossOf("lossy"), lossOf("float32"), 0.3 * lossOf("float32")) << more;
  }
}

}  // namespace
}  // namespace dtf::testing
