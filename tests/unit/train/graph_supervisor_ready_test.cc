// The mark of readiness, by a clock of the test; graph_supervisor_test.cc has the supervisor's
// other tests.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "common/engine/local_tasks.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/optimizer/minimize.h"
#include "common/optimizer/optimizer_text.h"
#include "common/train/graph_supervisor.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

class GraphSupervisorReady : public ::testing::Test {
 protected:
  GraphSupervisorReady() {
    disk_.makeFolder("/run");
    graph::Builder b(graph_);
    const graph::Output w = b.variable("w", Shape{3}, "ones");
    optimizer::minimize(graph_, b.sum(b.mul(w, w)), optimizer::decodeOptimizer("adam"));
  }
  std::unique_ptr<GraphSupervisor> supervisor(bool is_chief) {
    GraphSupervisorOptions options;
    options.is_chief = is_chief;
    options.task = is_chief ? "worker/0" : "worker/1";
    options.log_dir = "/run";
    options.summarize_every = std::nullopt;
    options.clock = &clock_;
    options.wait_until = [this](TimePoint until) { clock_.advance(until - clock_.now()); };
    return std::make_unique<GraphSupervisor>(disk_, options);
  }
  // All sessions of a test share the variables of one process.
  void prepare(GraphSupervisor& supervisor) {
    supervisor.prepare(
        graph_,
        [this](const graph::Graph& graph) {
          return std::make_shared<engine::Session>(
              graph, std::make_unique<engine::LocalTasks>(process_, std::chrono::seconds(60)));
        },
        false);
  }
  Duration passed() const { return clock_.now() - begin_; }

  dtf::testing::SimulatedDisk disk_;
  ManualClock clock_;
  const TimePoint begin_ = clock_.now();
  graph::Graph graph_{graph::standardOps()};
  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  std::shared_ptr<engine::LocalProcess> process_ =
      std::make_shared<engine::LocalProcess>(std::vector{
          engine::SessionDevice{graph::fullDevice({JobKind::kWorker, 0}), &device_, &kernels_}});
};

TEST_F(GraphSupervisorReady, AClientWithoutAChiefGivesUpByItsClock) {
  const auto other = supervisor(false);
  EXPECT_THAT(errorText([&] { prepare(*other); }),
              AllOf(HasSubstr("worker/1 has waited for 600 s"),
                    HasSubstr("waiting for worker/0 to initialise 'w'")));
  EXPECT_EQ(passed(), std::chrono::seconds(600));
}

TEST_F(GraphSupervisorReady, AMarkIsOfTheValuesThatItIsReadAfter) {
  const auto chief = supervisor(true), other = supervisor(false);
  prepare(*chief);
  prepare(*other);
  EXPECT_EQ(passed(), Duration{0}) << "the model was ready";
  process_->variables.reset("");
  const auto late = supervisor(false);
  EXPECT_THAT(errorText([&] { prepare(*late); }), HasSubstr("to initialise 'w'"));
}

TEST_F(GraphSupervisorReady, AClientOfAFinishedRunLeavesAfterTenSeconds) {
  const auto chief = supervisor(true);
  prepare(*chief);
  chief->stop();
  const auto other = supervisor(false);
  prepare(*other);
  EXPECT_TRUE(other->shouldStop());
  EXPECT_EQ(passed(), std::chrono::seconds(10));
}

}  // namespace
}  // namespace dtf::train
