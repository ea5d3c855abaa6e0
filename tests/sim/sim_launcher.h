#pragma once

// dtf-launch over simulated processes: it reports their events to the launcher's own decision code
// (launcher/task_monitor.h), and carries out the decisions in this world. It also checks the
// promises of launcher/USING.md with code of its own, so that it finds a mistake in the launcher.

#include <functional>
#include <optional>
#include <vector>

#include "common/base/error.h"
#include "launcher/task_monitor.h"
#include "tests/sim/plan.h"

namespace dtf::sim {

// One launch: the launcher of one life.
// Borrows: `plan`, `clock`.
class SimLauncher {
 public:
  struct Hooks {
    std::function<void(const std::string&)> log;
    std::function<void(const std::string&)> complain;
    std::function<void(TaskId)> start;  // another process of the task
    std::function<void(TaskId, int signal)> signal;
    std::function<bool(TaskId)> suspended;
  };
  static constexpr Duration kTick = std::chrono::milliseconds(50);

  // `restarts_max`: for each task; the plan's, or as many as the ledger has room for.
  SimLauncher(const Plan& plan, uint32_t restarts_max, const Clock& clock, Hooks hooks);

  void onStarted(TaskId id);
  void onReady(TaskId id);
  // The process has ended with that status, and perhaps with an error.
  void onEnded(TaskId id, launcher::ExitStatus status, const std::optional<Error>& said);
  // A ps has given up that process of the worker, counted from 0.
  void onLost(TaskId worker, uint32_t process);
  // The chief has its result, saved where the job saves. `is_done`: all steps were done.
  void onResult(bool is_done);
  void onStopRequest();  // SIGTERM
  void tick();           // every kTick

  std::vector<uint32_t> finishedWorkers() const {
    return launcher::finishedWorkers(monitor_.facts());
  }
  bool finished() const { return monitor_.finished(); }
  bool stopping() const { return monitor_.stopping(); }
  bool hasResult() const { return has_result_; }
  // A failure that no restart mends, or more failures than the budget allows: the job may fail.
  bool mayFail() const { return may_fail_; }
  uint32_t missed() const { return missed_; }  // workers, for good
  bool gaveUp() const { return monitor_.outcome() == launcher::Outcome::kFailed; }
  // After the end: complains if the launcher's outcome contradicts the arguments.
  void judge(bool must_finish, bool has_result) const;

 private:
  struct Seen {  // of one task
    bool was_ready = false;
    std::vector<TimePoint> ends;
    bool ended_for_good = false;  // by an end that no restart mends
    bool missed = false;          // the job is to go on without it
  };
  size_t taskOf(TaskId id) const;
  bool overBudget(const Seen& seen) const;
  bool canMiss(TaskId id, const launcher::ExitStatus& status) const;
  void carryOut();

  const Clock& clock_;
  const Hooks hooks_;
  const uint32_t backups_;  // workers that no step needs
  const launcher::MonitorLimits limits_;
  launcher::TaskMonitor monitor_;
  std::vector<Seen> seen_;
  uint32_t missed_ = 0;
  bool may_fail_ = false;
  bool has_result_ = false;
  bool chief_finished_ = false;
  bool chief_done_ = false;             // and nothing excused a failure before
  std::optional<TimePoint> failed_at_;  // since when the job can't be mended
  bool said_late_ = false;
};

}  // namespace dtf::sim
