// The mark of readiness and of the end, by a clock of the test; graph_supervisor_test.cc has the
// supervisor's other tests.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
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

// A graph of one synchronous replica.
struct LoneReplica {
  explicit LoneReplica(const graph::OpCatalog& ops) : graph(ops) {
    graph::Builder b(graph);
    const graph::Output w = b.variable("w", Shape{3}, "ones");
    const auto made =
        optimizer::minimize(graph, b.sum(b.mul(w, w)), optimizer::decodeOptimizer("adam"),
                            {.replicas = optimizer::SyncReplicas{1, 1, 0}});
    train = {graph.node(made.train.node).name};
  }
  graph::Graph graph;
  std::vector<std::string> train;
};

class GraphSupervisorMark : public ::testing::Test {
 protected:
  GraphSupervisorMark() {
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
  // All sessions of a test share the variables of one process. Opening takes longer than a program
  // waits that was asked to stop.
  void prepare(GraphSupervisor& supervisor) {
    supervisor.prepare(
        graph_,
        [this, gives_up = supervisor.givesUp()](const graph::Graph& graph) {
          at_open_();
          if (*gives_up) throw Error(ErrorCode::kUnavailable, "not all of these tasks reply yet");
          return std::make_shared<engine::Session>(
              graph, std::make_unique<engine::LocalTasks>(process_, std::chrono::seconds(60)));
        },
        false);
  }
  Duration passed() const { return clock_.now() - begin_; }

  dtf::testing::SimulatedDisk disk_;
  std::function<void()> at_open_ = [] {};
  ManualClock clock_;
  const TimePoint begin_ = clock_.now();
  graph::Graph graph_{graph::standardOps()};
  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  std::shared_ptr<engine::LocalProcess> process_ =
      std::make_shared<engine::LocalProcess>(std::vector{
          engine::SessionDevice{graph::fullDevice({JobKind::kWorker, 0}), &device_, &kernels_}});
};

TEST_F(GraphSupervisorMark, AClientWithoutAChiefGivesUpByItsClock) {
  const auto other = supervisor(false);
  EXPECT_THAT(errorText([&] { prepare(*other); }),
              AllOf(HasSubstr("worker/1 has waited for 600 s"),
                    HasSubstr("waiting for worker/0 to initialise 'w'")));
  EXPECT_EQ(passed(), std::chrono::seconds(600));
}

TEST_F(GraphSupervisorMark, AMarkIsOfTheValuesThatItIsReadAfter) {
  const auto chief = supervisor(true), other = supervisor(false);
  prepare(*chief);
  prepare(*other);
  EXPECT_EQ(passed(), Duration{0}) << "the model was ready";
  process_->variables.reset("");
  const auto late = supervisor(false);
  EXPECT_THAT(errorText([&] { prepare(*late); }), HasSubstr("to initialise 'w'"));
}

TEST_F(GraphSupervisorMark, AClientOfAFinishedRunLeavesAfterTenSeconds) {
  const auto chief = supervisor(true);
  prepare(*chief);
  chief->stop();
  const auto other = supervisor(false);
  prepare(*other);
  EXPECT_TRUE(other->shouldStop());
  EXPECT_EQ(passed(), std::chrono::seconds(10));
}

TEST_F(GraphSupervisorMark, TheChiefEndsItsRunHoweverLongTheMarkTakes) {
  const auto chief = supervisor(true), other = supervisor(false);
  prepare(*chief);
  prepare(*other);
  chief->requestStop();
  chief->stop();
  const auto late = supervisor(false);
  prepare(*late);
  EXPECT_TRUE(late->shouldStop()) << "the run is marked as finished";
}

TEST_F(GraphSupervisorMark, ARequestEndsTheOpeningOfAClientThatWaits) {
  const auto before = supervisor(true);
  before->requestStop();
  EXPECT_THAT(errorText([&] { prepare(*before); }), HasSubstr("not all of these tasks reply yet"));
  const auto during = supervisor(true);
  at_open_ = [&] { during->requestStop(); };
  EXPECT_THAT(errorText([&] { prepare(*during); }), HasSubstr("not all of these tasks reply yet"));
}

// A gradient is refused, and the task has no room for another session at that moment.
TEST_F(GraphSupervisorMark, AClientOfAFinishedRunLeavesAlsoIfTheMarkIsRefusedForSomeSeconds) {
  const LoneReplica alone(graph::standardOps());
  graph_ = alone.graph;
  const auto chief = supervisor(true), other = supervisor(false);
  prepare(*chief);
  prepare(*other);
  chief->stop();
  int refusals = 5;
  at_open_ = [&] {
    if (refusals-- > 0) throw Error(ErrorCode::kUnavailable, "the task has 512 sessions");
  };
  EXPECT_FALSE(other->run({}, alone.train, {}));
  EXPECT_TRUE(other->shouldStop());
  EXPECT_EQ(passed(), std::chrono::seconds(5));
}

}  // namespace
}  // namespace dtf::train
