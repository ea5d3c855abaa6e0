#pragma once

// A job with tasks that are started by hand, killed, and started again.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

inline constexpr auto kEnd = std::chrono::seconds(90);

// Sends that worker of a launch, found in leftovers(), a signal. The process; -1: there is none.
inline pid_t signalWorker(const std::vector<std::string>& processes, int rank, int signal) {
  const std::string option("--task\0", 7);  // as /proc has it
  for (const std::string& process : processes) {
    const bool is_it = process.find("workerd") != std::string::npos &&
                       process.find(option + std::to_string(rank)) != std::string::npos;
    if (!is_it) continue;
    const pid_t pid = std::stoi(process);
    ::kill(pid, signal);
    return pid;
  }
  return -1;
}

class RecoveryTest : public ClusterTest {
 protected:
  // However a test ends, with its tasks or before them.
  void TearDown() override {
    const bool ended = ps_.empty() && workers_.empty();
    for (Tasks* tasks : {&ps_, &workers_}) tasks->clear();
    if (ended)
      expectNothingLeft();
    else
      expectNobodyLeft();  // a task killed during a save leaves an attempt
  }

  // Starts the tasks of `options` by hand, unhurried unless it is the "calm" job that another is
  // compared with.
  void start(ClusterOptions options, const std::string& name) {
    is_unhurried_ = name != "calm";
    options.ports = freePorts(options.ps + options.workers);
    file_ = writeCluster(options, name);
    for (int i = 0; i < options.ps; ++i) ps_.push_back(task("ps", i));
    for (int i = 0; i < options.workers; ++i) workers_.push_back(task("worker", i));
  }

  // Waits until the chief has come to `step`.
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
    const auto end = std::chrono::steady_clock::now() + Process::kSlowest * kEnd;
    while (lastStep() < step) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << workers_[0]->err();
      ASSERT_TRUE(workers_[0]->running()) << logsOfEnded();
      ::usleep(5'000);
    }
  }

  // Also of the tasks that a test has killed and not started again.
  std::string logsOfEnded() {
    std::string logs;
    for (Tasks* tasks : {&ps_, &workers_})
      for (auto& task : *tasks)
        if (task != nullptr && !task->running()) logs += task->err() + "\n";
    return logs;
  }

  // The chief's last word of its progress; -1: none yet.
  int lastStep() {
    const std::string log = workers_[0]->err();
    const size_t at = log.rfind(" event=progress step=");
    return at == std::string::npos ? -1 : std::atoi(log.c_str() + at + 21);
  }

  // How many steps each going back to a `source`, "checkpoint" or "snapshot", cost, by the chief's
  // log.
  std::vector<int> stepsLost(const std::string& source) {
    std::vector<int> lost;
    std::istringstream lines(workers_[0]->err());
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find("all go back ");
      if (line.find("event=went_back") == std::string::npos || at == std::string::npos) continue;
      if (line.find(" to the " + source + " of step ") != std::string::npos)
        lost.push_back(std::atoi(line.c_str() + at + 12));
    }
    return lost;
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

  // A job of two workers and two ps, started by hand, does all its steps though a worker and a ps
  // are killed and started again.
  void expectLossesToCostTimeAlone(ClusterOptions options) {
    options.steps = 3000;
    options.optimizer = "{adam: {learning_rate: 0.001}}";
    options.train_more = "  report: {every_steps: 25}\n  checkpoint: {every_steps: 100}\n";
    start(options, "disturbed");
    killAndStartAgain(1, 150);
    loseAndStartAgain({1}, 400);
    ASSERT_TRUE(workers_[0]->waitForOutput("event=went_back", kEnd)) << workers_[0]->err();
    awaitEnd();
    EXPECT_EQ(summary("disturbed")["global_step"], options.steps);
    EXPECT_GT(summary("disturbed")["eval"].doubleAt("accuracy"), 0.75) << "600 examples";
  }

  std::string digestOf(const std::string& name) {
    return summary(name).stringAt("parameters_digest");
  }

  std::unique_ptr<Process> task(const std::string& job, int index) {
    std::map<std::string, std::string> environment;
    if (is_unhurried_) environment = unhurried();
    if (auto found = failpoints_.extract(job + "/" + std::to_string(index)))
      environment["DTF_FAILPOINTS"] += ";" + found.mapped();
    return std::make_unique<Process>(startTask(file_, job, index, {}, environment));
  }

  using Tasks = std::vector<std::unique_ptr<Process>>;
  std::string file_;
  bool is_unhurried_ = true;
  std::map<std::string, std::string> failpoints_;  // by task: of its next process
  Tasks ps_;
  Tasks workers_;
};

inline constexpr int kSteps = 1200;

inline ClusterOptions syncJob() {
  return {.mode = "sync",
          .steps = kSteps,
          .optimizer = "{adam: {learning_rate: 0.001}}",
          .train_more = "  report: {every_steps: 20}\n"};
}

// Steps so slow that a cut is whole long before the next one is due.
inline ClusterOptions slowJob(const std::string& top_more, const std::string& train_more) {
  return {.mode = "sync",
          .steps = 400,
          .optimizer = "{adam: {learning_rate: 0.001}}",
          .top_more = top_more,
          .train_more = train_more + "  report: {every_steps: 5}\n"};
}
// Steps while a cut becomes whole, on a host that is busy with other tests.
inline constexpr int kSlowStepsOfACut = 30;

}  // namespace dtf::testing
