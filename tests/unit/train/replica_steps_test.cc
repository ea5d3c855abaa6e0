#include "common/train/replica_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "common/engine/local_tasks.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/optimizer/minimize.h"
#include "common/optimizer/optimizer_text.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

// One client whose step has one gradient.
class ReplicaStepsTest : public ::testing::Test {
 protected:
  ReplicaStepsTest() {
    graph::Builder b(graph_);
    const graph::Output w = b.variable("w", Shape{3}, "ones");
    const auto made =
        optimizer::minimize(graph_, b.sum(b.mul(w, w)), optimizer::decodeOptimizer("adam"),
                            {.replicas = optimizer::SyncReplicas{1, 1, 0}});
    train_ = {graph_.node(made.train.node).name};
    session_ = std::make_unique<engine::Session>(
        graph_, std::make_unique<engine::LocalTasks>(process_, std::chrono::seconds(60)));
    session_->initialize(1);
  }
  void setStep(const std::string& counter, int64_t step) {
    Tensor value(DType::kInt64, Shape());
    value.as<int64_t>()[0] = step;
    session_->setVariable(counter, value);
  }

  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  std::shared_ptr<engine::LocalProcess> process_ =
      std::make_shared<engine::LocalProcess>(std::vector{
          engine::SessionDevice{graph::fullDevice({JobKind::kWorker, 0}), &device_, &kernels_}});
  graph::Graph graph_{graph::standardOps()};
  std::vector<std::string> train_;
  std::unique_ptr<engine::Session> session_;
};

TEST_F(ReplicaStepsTest, AStepThatStaysHalfTakenIsStuck) {
  ReplicaSteps steps(graph_, "global_step");
  EXPECT_TRUE(steps.isWhole(*session_));
  setStep("global_step", 4);
  for (int look = 0; look < 3; ++look) {
    EXPECT_FALSE(steps.isStuck());
    EXPECT_FALSE(steps.isWhole(*session_));
  }
  EXPECT_TRUE(steps.isStuck());
  EXPECT_EQ(steps.step(), 4);
  setStep("global_step", 5);
  EXPECT_TRUE(steps.isWhole(*session_)) << "clients take steps";
  EXPECT_FALSE(steps.isStuck());
}

TEST_F(ReplicaStepsTest, FinishRefusesLaterGradients) {
  session_->run({}, train_);
  ReplicaSteps(graph_, "global_step").finish(*session_);
  EXPECT_THAT(graph::testing::errorText([&] { session_->run({}, train_); }),
              ::testing::HasSubstr("is finished"));
}

}  // namespace
}  // namespace dtf::train
