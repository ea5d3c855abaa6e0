#pragma once

// A job whose tasks are started by hand, killed, and started again.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

inline constexpr auto kEnd = std::chrono::seconds(90);

class RecoveryTest : public ClusterTest {
 protected:
  // Starts the tasks of `options` by hand.
  void start(ClusterOptions options, const std::string& name) {
    options.ports = freePorts(options.ps + options.workers);
    file_ = writeCluster(options, name);
    for (int i = 0; i < options.ps; ++i) ps_.push_back(task("ps", i));
    for (int i = 0; i < options.workers; ++i) workers_.push_back(task("worker", i));
  }

  // Once the chief has come to `step`.
  void killAndStartAgain(int rank, int step) {
    awaitStep(step);
    kill("worker", rank);
    workers_[rank] = task("worker", rank);
  }

  // Once the chief has come to `step`: those ps are killed, then started again.
  void loseAndStartAgain(const std::vector<int>& ps, int step) {
    awaitStep(step);
    for (const int index : ps) kill("ps", index);
    for (const int index : ps) ps_[index] = task("ps", index);
  }

  void kill(const std::string& job, int index) {
    Process& process = *(job == "ps" ? ps_ : workers_)[index];
    process.signal(SIGKILL);
    process.wait(kEnd);
  }

  void awaitStep(int step) {
    const auto end = std::chrono::steady_clock::now() + kEnd;
    while (lastStep() < step) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << workers_[0]->err();
      ASSERT_TRUE(workers_[0]->running()) << workers_[0]->err();
      ::usleep(5'000);
    }
  }

  // The chief's last word of its progress; -1: none yet.
  int lastStep() {
    const std::string log = workers_[0]->err();
    const size_t at = log.rfind(" event=progress step=");
    return at == std::string::npos ? -1 : std::atoi(log.c_str() + at + 21);
  }

  void awaitEnd() {
    for (Tasks* tasks : {&ps_, &workers_})
      for (auto& task : *tasks) {
        const ProcessResult result = task->wait(kEnd);
        EXPECT_EQ(result.exit_code, 0) << result.err;
      }
    ps_.clear();
    workers_.clear();
  }

  std::string digestOf(const std::string& name) {
    return summary(name)["parameters_digest"].get<std::string>();
  }

  std::unique_ptr<Process> task(const std::string& job, int index) {
    return std::make_unique<Process>(startTask(file_, job, index));
  }

  using Tasks = std::vector<std::unique_ptr<Process>>;
  std::string file_;
  Tasks ps_;
  Tasks workers_;
};

inline constexpr int kSteps = 12000;

inline ClusterOptions syncJob() {
  return {.mode = "sync",
          .steps = kSteps,
          .optimizer = "{adam: {learning_rate: 0.001}}",
          .train_more = "  report: {every_steps: 200}\n"};
}

}  // namespace dtf::testing
