#include "common/serving/serving_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>

#include "common/base/error.h"
#include "common/engine/session.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/wire/session/remote_tasks.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::serving {
namespace {

using ::testing::HasSubstr;

ServingOptions onePs(uint16_t port = 0) {
  ServingOptions options{.task = {JobKind::kPs, 0}, .cluster = {}, .credentials = {}};
  options.cluster.ps.emplace_back().address = {"localhost", port};
  return options;
}

TEST(ServingTask, RunsAGraphOfAClient) {
  ServingTask task(onePs());
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  b.node("Const", {}, {{"dtype", DType::kFloat32}, {"shape", Shape({2})}, {"value", 3.0}}, "c");
  engine::Session session(graph, std::make_unique<wire::RemoteTasks>(wire::RemoteTasksOptions{
                                     .targets = {"dtf://" + task.address().str() + "/ps/0"}}));
  const std::vector<engine::Feed> none;
  EXPECT_EQ(session.run(none, std::vector<std::string>{"c"}).at(0).as<float>()[1], 3);
  EXPECT_EQ(task.sessions(), 1U);
}

TEST(ServingTask, AFailedStartLeavesNothing) {
  const ServingTask first(onePs());
  const uint16_t port = first.address().port;
  EXPECT_THAT(graph::testing::errorText([&] { ServingTask second(onePs(port)); }),
              HasSubstr(std::to_string(port)));
}

TEST(ServingTask, JoinWaitsForTheFirstReason) {
  ServingTask task(onePs());
  EXPECT_FALSE(task.join(Duration::zero()));
  EXPECT_FALSE(task.join(std::chrono::milliseconds(-5)));
  auto joined = std::async(std::launch::async, [&] { return task.join(std::nullopt); });
  task.stop("one");
  task.stop("two");
  EXPECT_EQ(joined.get()->reason, "one");
  EXPECT_EQ(task.join(Duration::max())->reason, "one");
}

TEST(ServingTask, AnEndBySignalHasItsNumber) {
  ServingOptions options = onePs();
  options.handles_signals = true;
  ServingTask task(options);
  std::raise(SIGINT);
  const auto end = task.join(std::nullopt);
  EXPECT_EQ(end->signal, SIGINT);
  EXPECT_EQ(end->reason, "ps/0 received SIGINT");
}

TEST(ServingTask, TheSecondSignalEndsTheProcessAlsoAfterStop) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        ServingOptions options = onePs();
        options.handles_signals = true;
        ServingTask task(options);
        task.stop("ended");
        std::raise(SIGTERM);  // the first: it would exit with its own number
        std::raise(SIGINT);
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (std::chrono::steady_clock::now() < deadline) task.sessions();
        std::_Exit(1);
      },
      ::testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(ServingTask, GivesTheProgramsHandlersBack) {
  struct sigaction before {
  }, own{}, now{};
  own.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGINT, &own, &before), 0);
  {
    ServingOptions options = onePs();
    options.handles_signals = true;
    const ServingTask task(options);
    ASSERT_EQ(sigaction(SIGINT, nullptr, &now), 0);
    EXPECT_NE(now.sa_handler, own.sa_handler);
  }
  ASSERT_EQ(sigaction(SIGINT, &before, &now), 0);
  EXPECT_EQ(now.sa_handler, own.sa_handler);
}

}  // namespace
}  // namespace dtf::serving
