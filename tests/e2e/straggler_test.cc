// The slow worker of a sync job: in `dtf-launch status`, in the logs, in the metrics and in the
// summary.

#include <gmock/gmock.h>

#include <memory>
#include <regex>
#include <thread>
#include <vector>

#include "tests/e2e/cluster_fixture.h"
#include "tests/support/http_client.h"

namespace dtf::testing {

using ::testing::HasSubstr;
using ::testing::Not;

namespace {

// Every step of every worker takes ten milliseconds at least, so that the scheduler's turns are
// small beside it.
constexpr const char* kSteady = "training.in_step=sleep:10";

class StragglerTest : public ClusterTest {
 protected:
  // Starts the tasks of a file by hand; each worker with its failpoints.
  void start(ClusterOptions options, const std::vector<std::string>& failpoints) {
    options.workers = static_cast<int>(failpoints.size());
    options.ports = freePorts(options.ps + options.workers);
    file_ = writeCluster(options);
    for (int i = 0; i < options.ps; ++i)
      ps_.push_back(std::make_unique<Process>(startTask(file_, "ps", i)));
    for (int rank = 0; rank < options.workers; ++rank)
      workers_.push_back(std::make_unique<Process>(startTask(
          file_, "worker", rank, {}, {{"DTF_FAILPOINTS", failpoints[static_cast<size_t>(rank)]}})));
  }
  std::string status(const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {binary("dtf-launch"), "status", file_};
    command.insert(command.end(), more.begin(), more.end());
    return runProcess(command, kPatience, {}, folder_.path()).out;
  }
  // Asks until `is_it(answer)`, or in vain.
  template <class IsIt>
  Json awaitStatus(const IsIt& is_it) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      Json answer = Json::parseOrNull(status({"--json"}));
      if ((answer.isObject() && is_it(answer)) || std::chrono::steady_clock::now() >= end)
        return answer;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  static bool names(const Json& answer, const std::string& phase) {
    const Json* const found = answer.find("straggler");
    return found != nullptr && found->isObject() && found->stringAt("worker") == "worker/1" &&
           found->stringAt("phase") == phase;
  }
  // The steps of `task` in a status, by phase.
  static Json phasesOf(const Json& answer, const std::string& task) {
    for (const Json& each : answer["tasks"])
      if (each["name"] == task) return each["answer"]["step_ms"];
    return nullptr;
  }

  std::string file_;
  std::vector<std::unique_ptr<Process>> ps_, workers_;
};

TEST_F(StragglerTest, OneWithSlowDataIsNamed) {
  start({.ps = 1, .mode = "sync", .steps = kEndless},
        {kSteady, std::string(kSteady) + ";training.in_read=sleep:40"});
  const Json answer = awaitStatus([](const Json& said) {
    return names(said, "data") && !phasesOf(said, "worker/1").isNull() &&
           !phasesOf(said, "worker/0").isNull();
  });
  ASSERT_TRUE(names(answer, "data")) << answer;
  const Json slow = phasesOf(answer, "worker/1"), other = phasesOf(answer, "worker/0");
  EXPECT_GE(slow.doubleAt("data"), 40) << answer;
  EXPECT_GE(slow.doubleAt("compute"), 10);
  EXPECT_GT(other.doubleAt("wait"), slow.doubleAt("wait")) << "it waits least";
  EXPECT_LT(other.doubleAt("data"), slow.doubleAt("data"));
  EXPECT_TRUE(ps_[0]->waitForOutput("event=straggler worker=worker/1 phase=data", kPatience))
      << ps_[0]->err();
  const std::string text = status();
  EXPECT_THAT(text, HasSubstr("slowest     worker/1: data, ")) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("worker/0 .* ms a step: .*wait "))) << text;
}

TEST_F(StragglerTest, OneThatComputesSlowlyIsNamedToItsPrometheus) {
  const int port = freePorts(1)[0];
  ClusterOptions options{.ps = 1, .mode = "sync", .steps = kEndless};
  options.workers = 2;
  options.ports = freePorts(3);
  file_ = writeCluster(options);
  ps_.push_back(std::make_unique<Process>(
      startTask(file_, "ps", 0, {"--metrics-port", std::to_string(port)})));
  for (int rank = 0; rank < 2; ++rank)
    workers_.push_back(std::make_unique<Process>(
        startTask(file_, "worker", rank, {},
                  {{"DTF_FAILPOINTS", rank == 1 ? "training.in_step=sleep:50" : kSteady}})));
  ASSERT_TRUE(ps_[0]->waitForOutput("event=straggler worker=worker/1 phase=compute", kPatience))
      << ps_[0]->err();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  double seconds = 0;
  while (!(seconds > 0) && std::chrono::steady_clock::now() < end)
    seconds = parseMetrics(httpGet(port, "/metrics").body)
                  .value("dtf_straggler_seconds", "worker=\"worker/1\",phase=\"compute\"");
  EXPECT_GT(seconds, 0.02);
  EXPECT_LT(seconds, 10);
}

TEST_F(StragglerTest, OneWithASlowLinkIsNamedAlsoWithoutPs) {
  start({.ps = 0, .mode = "sync", .steps = kEndless},
        {kSteady, std::string(kSteady) + ";training.in_send=sleep:40", kSteady});
  const Json answer = awaitStatus([](const Json& said) { return names(said, "send"); });
  EXPECT_TRUE(names(answer, "send")) << answer;
}

TEST_F(StragglerTest, AChiefThatEvaluatesIsNone) {
  start({.ps = 1, .mode = "sync", .steps = 80, .train_more = "  eval: {every_steps: 4}\n"},
        {std::string(kSteady) + ";training.in_evaluation=sleep:100", kSteady});
  for (const auto& worker : workers_) EXPECT_EQ(worker->wait(kPatience).exit_code, 0);
  EXPECT_THAT(ps_[0]->wait(kPatience).err, Not(HasSubstr("event=straggler worker=worker/0")));
}

TEST_F(StragglerTest, TheSummaryHasTheSlowestWorkerOfTheJob) {
  start({.ps = 1, .mode = "sync", .steps = 60}, {kSteady, "training.in_step=sleep:50"});
  for (const auto& worker : workers_) EXPECT_EQ(worker->wait(kPatience).exit_code, 0);
  const Json slowest = summary()["slowest"];
  ASSERT_TRUE(slowest.isObject()) << summary();
  EXPECT_EQ(slowest["worker"], "worker/1");
  EXPECT_EQ(slowest["phase"], "compute");
  EXPECT_GE(slowest["steps"].asUint64(), 20u);
  EXPECT_GE(slowest["seconds"].asDouble(), 0.5);
}

TEST_F(StragglerTest, InAsyncTrainingNobodyWaits) {
  start({.ps = 1, .mode = "async", .steps = kEndless}, {kSteady, "training.in_step=sleep:50"});
  const Json answer = awaitStatus([](const Json& said) {
    return !phasesOf(said, "worker/0").isNull() && !phasesOf(said, "worker/1").isNull();
  });
  EXPECT_GE(phasesOf(answer, "worker/1").doubleAt("compute"), 50) << answer;
  EXPECT_TRUE(answer["straggler"].isNull()) << answer;
  EXPECT_THAT(status(), HasSubstr("slowest     none: no worker waits for another (async)"));
}

}  // namespace

}  // namespace dtf::testing
