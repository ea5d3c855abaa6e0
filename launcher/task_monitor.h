#pragma once

// Decides: which task is up, which one failed first, when the others must stop, and how the job
// ended. Pure: it takes events and the clock, and gives orders; it neither starts, signals nor
// reads anything itself.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "launcher/end_of_job.h"
#include "launcher/exit_status.h"
#include "launcher/notice.h"
#include "launcher/restart_policy.h"

namespace dtf::launcher {

//   done         every task ended well, but for workers that the job could spare
//   stopped      a person asked it to stop, and it ended by itself, saved; or it served clients
//   interrupted  a person asked it to stop, and the tasks were ended, unsaved
//   failed       all else
enum class Outcome : uint8_t { kDone, kStopped, kInterrupted, kFailed };
std::string_view outcomeName(Outcome outcome);  // "done" and so on

struct MonitorLimits {
  Duration start = std::chrono::seconds(60);  // for every task to become ready
  // From the first worker's end to that of the last, and from there to that of the last ps. Behind
  // the result what is left is ended, which is no failure.
  Duration finish = std::chrono::seconds(610);
  Duration last = std::chrono::seconds(30);
  Duration grace = std::chrono::seconds(2);  // from SIGTERM to SIGKILL, and from there to giving up
  // With checkpoints: for the job to save and end by itself when a person asks it to stop. 0: it is
  // not asked, its tasks are stopped.
  Duration save{};
  // A peer of the task that failed may be seen to end before it does (its sockets close before it
  // is gone), saying that it lost a peer. So an end that may only be derived is not believed to be
  // the root cause for this long.
  Duration settle = std::chrono::milliseconds(300);
  RestartLimits restarts{.max = 0};  // of each task
  bool serves = false;               // no job: tasks wait for clients until somebody ends them
  uint32_t spares = 0;               // backup workers: a step is made without so many of them
  bool workers_host = false;         // the shards, in a job without ps: none can be spared
  // A ps that is suspended for longer while workers run has lost them: it is killed, to be started
  // again. Workers are given up by the ps, see onLost(). Whoever is suspended for longer when the
  // job has its result is killed.
  Duration lease = std::chrono::seconds(10);

  // Whether the task hosts a shard: the others need its values.
  bool hostsShard(TaskId id) const { return id.job == JobKind::kPs || workers_host; }
};

struct SignalOrder {
  size_t task = 0;
  int signal = 0;
  bool operator==(const SignalOrder&) const = default;
};

struct RootCause {
  std::optional<size_t> task;  // none: the launcher itself
  std::string what;            // "worker/1 exited with code 65 (bad_data)"
  std::string message;         // in the task's own words; may be empty
  int exit_code = 1;           // of the job
};

// Owns: the states.
// Borrows: `clock` (must outlive this).
// Threads: thread-compatible.
// Blocks: never. Tasks are counted as in the list given. Every call may give orders: takeOrders()
// after each.
class TaskMonitor {
 public:
  TaskMonitor(std::vector<TaskId> tasks, const Clock& clock, MonitorLimits limits);

  // The first is about to be started: MonitorLimits::start counts from here. What comes before it,
  // such as hosts that are connected, has deadlines of its own.
  void onStart() { start_time_ = clock_.now(); }
  void onSpawned(size_t task);  // at first, or again after takeStarts()
  void onReady(size_t task);
  // What a task that isn't ready waits for, in its own words; empty: nothing any more. "its data:
  // ..." begins MonitorLimits::start anew.
  void onWaiting(size_t task, std::string_view whom);
  void onFailedNotice(size_t task, FailedNotice notice);
  // A worker's process has reported that its part of the job is done. If it hosts a shard, it stays
  // until all workers have finished.
  void onFinished(size_t task);
  // The chief has reported its result, and the job is saved where it saves: nothing is left to be
  // lost (end_of_job.h). `is_done`: of all steps, so that a failure before it doesn't matter. A
  // further call has no effect.
  void onResult(bool is_done);
  void onExit(size_t task, ExitStatus status);
  // The process does not run (SIGSTOP, Ctrl-Z), or runs again. To be called whenever it is looked
  // at.
  void onSuspended(size_t task, bool suspended);
  // A ps has given up that process of the worker (processIndex()): its lease has run out, and it
  // may not run at all. It is killed, so that another one can take its place.
  void onLost(size_t task, uint32_t process);
  // Something of the launcher's own failed (`task`: while starting that one); the job can't go on.
  void onError(std::optional<size_t> task, const Error& error);
  // Ctrl-C and its like. Once: the chief is asked to save and end the job (limits.save), or all are
  // asked to stop; again, or while they are stopping: they are killed. A chief that is restarted
  // meanwhile is asked when it is ready.
  void onStopRequest(int signal);
  // To be called often; deadlines are noticed here.
  void onTime();

  std::vector<SignalOrder> takeOrders();
  // The tasks that are to be started again now.
  std::vector<size_t> takeStarts();

  // Nothing is left to wait for: everyone is gone, or outlived even SIGKILL and was given up.
  bool finished() const;
  bool stopping() const { return stop_time_.has_value(); }
  bool saving() const { return save_time_.has_value() && !stopping(); }  // the job ends by itself
  // The job has its result, and what has not ended by itself is ended.
  bool endsTheRest() const { return stopping() && !root_ && stop_signal_ == 0; }
  std::vector<TaskFacts> facts() const;
  bool allReady() const;  // everyone is, or has been, ready

  Outcome outcome() const;
  // 0, also when SIGTERM had the job saved and ended, as for a daemon that is told to stop; the
  // root cause's; 128+n for any other signal n that asked it to stop, and for one that saved
  // nothing.
  int jobExitCode() const;
  const std::optional<RootCause>& rootCause() const { return root_; }

  size_t size() const { return tasks_.size(); }
  TaskId id(size_t task) const { return tasks_[task].id; }
  TaskState state(size_t task) const { return tasks_[task].state; }
  const std::optional<ExitStatus>& exit(size_t task) const { return tasks_[task].exit; }
  bool alive(size_t task) const;
  bool serves() const { return limits_.serves; }
  uint32_t restarts(size_t task) const { return tasks_[task].restarts; }
  // Which process it has, counted from 0; while it waits, which one is next.
  uint32_t processIndex(size_t task) const { return tasks_[task].policy.restarts(); }
  // Of a task that waits: how its last process ended, and when the next one starts.
  std::string restartText(size_t task) const;
  // "worker/1 3 times, the last after it was killed by SIGKILL (signal 9)", of each that was
  // started again.
  std::vector<std::string> restartHistory() const;
  std::string cause(size_t task) const;  // why it ended as it did; empty when all is well
  enum class Named : uint8_t { kNotReady, kAlive, kSuspended };
  // "ps/0, worker/1 (awaits its data: t.csv, 3.2 GiB)"; at most eight of them.
  std::string names(Named which) const;

 private:
  struct Task {
    TaskId id;
    RestartPolicy policy;
    TaskState state = TaskState::kPlanned;
    TimePoint started;                     // this process; or its last word that it reads data
    TimePoint restart_time;                // waiting
    uint32_t restarts = 0;                 // that have been: a process was made
    std::string restarted_after;           // how the process before this one ended
    bool was_ready = false;                // some process of it
    bool given_up = false;                 // this process, which is to be missed: it has SIGKILL
    bool has_finished = false;             // this process has reported that
    std::optional<TimePoint> ready_since;  // this process
    std::optional<ExitStatus> exit;
    std::string awaited;  // by this process, which isn't ready
    std::optional<FailedNotice> notice;
    std::optional<TimePoint> first_sign;  // of its failure
    std::optional<TimePoint> suspended_since;
    std::optional<TimePoint> missed_since;  // see killFrozen()
  };

  void judgeBy(TimePoint time);
  void judge();
  JobPhase phase() const { return {has_result_, saving(), stopping(), limits_.serves}; }
  bool isOver() const { return launcher::isOver(facts(), phase()); }
  void onFailure(size_t task, const ExitStatus& status);
  bool scheduleRestart(size_t task, const ExitStatus& status);
  bool canSpare(size_t task) const;
  void forgetFailure(size_t task);
  bool isInVain(size_t task, const ExitStatus& status) const;
  void dropLate();
  std::optional<size_t> firstFailed(bool even_derived) const;
  void checkDeadlines();
  void killFrozen();
  bool askChiefToSave();
  bool obeyed(size_t task, ExitStatus status) const;
  void stop(std::optional<RootCause> root);
  void killAll();
  void order(int signal);
  void noteGone(size_t task);
  bool anyAlive() const;
  RootCause causeOf(size_t task) const;
  std::optional<size_t> suspendedFirst() const;
  RootCause causeOfSuspended(size_t task, size_t witness) const;
  template <class Predicate>
  std::string namesOf(Predicate predicate) const;

  const Clock& clock_;
  const MonitorLimits limits_;
  TimePoint start_time_;  // of all tasks
  std::vector<Task> tasks_;
  std::vector<SignalOrder> orders_;
  std::optional<TimePoint> judge_time_;   // when the failures seen so far are judged
  std::optional<TimePoint> finish_time_;  // when everyone must have ended
  std::optional<TimePoint> save_time_;    // when the job must have saved and ended
  TimePoint ignore_until_;                // a repeated request to stop, after the first
  std::optional<TimePoint> stop_time_;    // when the launcher began to stop everyone
  std::optional<TimePoint> kill_time_;    // when it sent SIGKILL
  std::optional<RootCause> root_;
  bool root_by_notice_ = false;  // the root cause's process lives: its exit code will say more
  int stop_signal_ = 0;          // that the person sent
  bool has_result_ = false;
};

}  // namespace dtf::launcher
