#include "common/train/signal_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "common/base/error.h"
#include "common/graph/op_def.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::train {
namespace {

using ::testing::HasSubstr;

graph::Graph countedGraph() {
  graph::Graph graph(graph::standardOps());
  graph.addNode(
      {.name = "global_step",
       .op = "Variable",
       .inputs = {},
       .attributes = {
           {"shape", Shape()}, {"dtype", DType::kInt64}, {"initializer", std::string("zeros")}}});
  return graph;
}

// The wait for tasks that never come ends with the request.
TEST(SignalWatch, ASignalRequestsAStop) {
  testing::SimulatedDisk disk;
  GraphSupervisorOptions options;
  options.log_dir = "/run";
  options.wait_max = std::chrono::seconds(600);
  options.poll_every = std::chrono::seconds(600);
  GraphSupervisor supervisor(disk, options);
  const SignalWatch watch(supervisor);
  const auto lost = [](const graph::Graph&) -> std::shared_ptr<engine::Session> {
    raise(SIGTERM);
    throw Error(ErrorCode::kUnavailable, "no task is there");
  };
  EXPECT_THAT(graph::testing::errorText([&] { supervisor.prepare(countedGraph(), lost, false); }),
              HasSubstr("was asked to stop while it waited: no task is there"));
  EXPECT_TRUE(supervisor.shouldStop());
}

// The first may be repeated at once, by a sender that signals the group as well.
TEST(SignalWatch, ASecondSignalEndsTheProcess) {
  const auto signalAgainAndAgain = [] {
    testing::SimulatedDisk disk;
    GraphSupervisorOptions options;
    options.log_dir = "/run";
    GraphSupervisor supervisor(disk, options);
    const SignalWatch watch(supervisor, SecondSignal::kEndsProcess);
    for (;;) raise(SIGINT);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(signalAgainAndAgain(), ::testing::KilledBySignal(SIGINT), "");
}

TEST(SignalWatch, TheHandlersBeforeItComeBack) {
  testing::SimulatedDisk disk;
  GraphSupervisorOptions options;
  options.log_dir = "/run";
  GraphSupervisor supervisor(disk, options);
  struct sigaction before {
  }, after{};
  sigaction(SIGTERM, nullptr, &before);
  { const SignalWatch watch(supervisor); }
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  EXPECT_FALSE(supervisor.shouldStop());
}

}  // namespace
}  // namespace dtf::train
