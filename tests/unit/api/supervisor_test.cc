#include <dtf/supervisor.h>
#include <dtf/sync_replicas.h>
#include <gmock/gmock.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "tests/unit/api/errors.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ApiSupervisor : public ::testing::Test {
 protected:
  ApiSupervisor() : folder_(::testing::TempDir() + "supervisor-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    const Output w = graph_.variable("w", {2}, "ones");
    loss_ = graph_.sum(graph_.mul(w, w));
    training_ = syncReplicas(GradientDescent{.learning_rate = 0.25}, {.replicas_to_aggregate = 1})
                    .minimize(graph_, loss_);
  }
  ~ApiSupervisor() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  Graph graph_;
  Output loss_{};
  SyncMinimized training_;
};

TEST_F(ApiSupervisor, RunsSavesAndGoesOn) {
  const auto train = [&](int steps) {
    Supervisor supervisor({.log_dir = folder_});
    supervisor.prepareOrWaitForSession(graph_);
    const int64_t begin = supervisor.globalStep();
    RunResult last;
    for (int i = 0; i < steps; ++i)
      last = supervisor.run({}, {graph_.name(training_.train), graph_.name(training_.accepted)});
    EXPECT_FALSE(last.recovered);
    EXPECT_EQ(last.values.at(0).as<int64_t>()[0], begin + steps);
    EXPECT_EQ(last.values.at(1).as<int64_t>()[0], 1);
    EXPECT_FLOAT_EQ(supervisor.run({}, {"w"}).values.at(0).as<float>()[0],
                    std::pow(0.5F, static_cast<float>(begin + steps)));
    supervisor.stop();
    EXPECT_TRUE(supervisor.shouldStop());
    return begin;
  };
  EXPECT_EQ(train(2), 0);
  EXPECT_EQ(train(1), 2) << "from the checkpoint";
}

TEST_F(ApiSupervisor, ASignalStopsItIfItIsAsked) {
  Supervisor supervisor({.log_dir = folder_, .handle_signals = true});
  supervisor.prepareOrWaitForSession(graph_);
  EXPECT_FALSE(supervisor.shouldStop());
  std::raise(SIGTERM);
  while (!supervisor.shouldStop()) supervisor.run({}, {"w"});
  supervisor.stop();
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/checkpoints/step-0"));
}

TEST_F(ApiSupervisor, AStopRequestEndsTheWaitForTasks) {
  Supervisor supervisor({.is_chief = false, .log_dir = folder_});
  supervisor.requestStop();
  dtf_session_options patient = Session::defaults();
  patient.connect_seconds = 1e6;
  EXPECT_THAT(
      refusal([&] { supervisor.prepareOrWaitForSession(graph_, {"dtf://localhost:1"}, patient); }),
      AllOf(StartsWith("69: "), HasSubstr("asked to stop while it waited"),
            HasSubstr("dtf://localhost:1")));
}

TEST_F(ApiSupervisor, MistakesAreNamed) {
  EXPECT_THAT(refusal([] { Supervisor({.log_dir = ""}); }),
              AllOf(StartsWith("2: "), HasSubstr("no log_dir")));
  EXPECT_THAT(refusal([&] { Supervisor({.log_dir = folder_, .max_to_keep = -2}); }),
              StartsWith("2: "));
  Graph other;
  const Output w = other.variable("w", {2}, "ones");
  const auto minimize = [&](const SyncReplicasOptions& replicas) {
    return refusal([&] { syncReplicas(Adam{}, replicas).minimize(other, other.sum(w)); });
  };
  EXPECT_THAT(minimize({}), AllOf(StartsWith("78: "), HasSubstr("replicas_to_aggregate is 0")));
  EXPECT_THAT(minimize({.total_num_replicas = 2, .rank = 2}), HasSubstr("rank 2 is none of the 2"));
  dtf_supervisor* made = nullptr;
  EXPECT_EQ(dtf_supervisor_new(nullptr, &made), DTF_USAGE);
}

}  // namespace
}  // namespace dtf::testing
