// replica_pause_test.cc reads beside clients that train.

#include "common/train/one_step_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "common/engine/local_tasks.h"
#include "common/graph/graph.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

// Two versions, in a graph without the nodes of a pause.
class OneStepReadTest : public ::testing::Test {
 protected:
  OneStepReadTest() {
    for (const std::string& name : versions_)
      graph_.addNode({.name = name,
                      .op = "Variable",
                      .inputs = {},
                      .attributes = {{"shape", Shape()},
                                     {"dtype", DType::kInt64},
                                     {"initializer", std::string("zeros")}},
                      .device = {}});
    session_ = std::make_unique<engine::Session>(
        graph_, std::make_unique<engine::LocalTasks>(process_, std::chrono::seconds(60)));
    session_->initialize(1);
    set("a", 7);
  }
  void set(const std::string& version, int64_t step) {
    Tensor value(DType::kInt64, Shape());
    value.as<int64_t>()[0] = step;
    session_->setVariable(version, value);
  }
  std::vector<Tensor> read() {
    return readOfOneStep(*session_, versions_, versions_,
                         {.patience = std::chrono::seconds(30),
                          .clock = &clock_,
                          .wait_until = [this](TimePoint until) {
                            clock_.advance(until - clock_.now());
                            if (++waits_ == completed_at_) set("b", 7);
                          }});
  }

  const std::vector<std::string> versions_ = {"a", "b"};
  ManualClock clock_;
  int waits_ = 0, completed_at_ = 0;
  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  std::shared_ptr<engine::LocalProcess> process_ =
      std::make_shared<engine::LocalProcess>(std::vector{
          engine::SessionDevice{graph::fullDevice({JobKind::kWorker, 0}), &device_, &kernels_}});
  graph::Graph graph_{graph::standardOps()};
  std::unique_ptr<engine::Session> session_;
};

TEST_F(OneStepReadTest, WaitsUntilTheStepIsComplete) {
  completed_at_ = 3;
  EXPECT_EQ(read().at(1).as<int64_t>()[0], 7);
  EXPECT_EQ(waits_, 3);
}

TEST_F(OneStepReadTest, ClaimsNoPauseThatTheGraphDoesNotHave) {
  EXPECT_THAT(graph::testing::errorText([&] { read(); }),
              ::testing::HasSubstr("a step stayed half taken for 30 s without a pause of the "
                                   "replicas ('b' is 0, but 'a' is 7)"));
}

}  // namespace
}  // namespace dtf::train
