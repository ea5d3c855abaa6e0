#pragma once

// What the chief says about the job: to its launcher, or, started by hand, on stdout and in
// <run_dir>/summary.json (README.md, "What a run leaves").

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mutex.h"
#include "common/base/run_lock.h"
#include "common/cluster/options.h"
#include "common/graph/placer.h"
#include "common/summary/event_writer.h"
#include "common/train/evaluation_history.h"
#include "common/train/supervisor.h"
#include "common/train/training_loop.h"
#include "daemons/restart_note.h"

namespace dtf::workerd {

// For the log: metrics are asked for, and there are no data for them.
void reportNothingToEvaluate();

// Which ps holds how much: for the launcher the notify line "model", for the log event=placement
// with `table` below it.
void reportModel(const graph::Placement& placement, const std::string& table);

// The notify line "checkpoint" and, for the log, event=checkpoint.
void reportCheckpoint(const train::SavedCheckpoint& saved);

// For the launcher: what a lost ps has cost.
void reportWentBack(const train::WentBack& back);

// For the launcher: what the job goes on from, and what that cost.
void reportGoesOn(const train::GoesOn& start, uint64_t steps);

struct JobResult {
  train::TrainingResult training;
  std::optional<train::Evaluation> evaluation{};
  std::optional<train::CheckpointStatus> checkpoints{};   // none: the job keeps none
  std::optional<summary::EventWriterStatus> summaries{};  // none: the job writes none
  std::optional<train::SnapshotStatus> snapshots{};       // none: the ps keep none
  std::optional<uint64_t> parameters_digest{};            // none: a ps was lost before the end
  Json left_out{};                                        // leftOutJson()
  std::string ended_early{};                              // why; empty: it has not
  std::optional<train::PastEvaluation> best{};            // that the job keeps; none: no such one

  bool isDone() const { return !training.stopped || !ended_early.empty(); }
  // The job had come to its end before this process: nothing was trained.
  bool wasDone() const {
    return isDone() && training.batches == 0 && training.first_step_number == training.global_step;
  }
};

// The report of one process. That of a worker that is not the chief says nothing. A launcher gets
// each line at once, and writes the summary itself. By hand the summary is written once, by done(),
// failed() or interrupted(), so that it can't say other than the exit code.
// Owns: what was said so far.
// Borrows: `task`.
// Threads: thread-safe.
// Blocks: done(), failed() and interrupted() on the disk; the rest on nothing but the launcher's
// pipe.
class JobReport {
 public:
  // How long interrupted() waits for the disk, which may be what the job hangs at.
  static constexpr auto kLastWordsMax = std::chrono::seconds(1);

  // By hand: takes the run directory's lock, as dtf-launch does otherwise, removes the summary of
  // an earlier run, which failed() puts back where this one has not begun, and done() where that
  // run had come to the job's end already, and remembers where the run is (run_registry.h); that
  // this can't be done costs a warning. In the place of a process that systemd has lost it goes on
  // with that one's note. Errors: kCannotWrite; kUnavailable when another job runs in that
  // directory.
  explicit JobReport(const cluster::TaskOptions& task);

  // An evaluation that comes with it is told as evaluated() does.
  void progress(const train::Progress& progress);
  void result(const JobResult& result);

  void done(int exit_code = 0);     // Errors: kCannotWrite, of the file and of stdout
  void failed(const Error& error);  // no errors: `error` is the one that counts
  void interrupted(int signal, const std::string& cause);  // ditto
  bool writes() const { return writes_; }                  // by hand, the chief

  // The process before this one was killed behind the job's result, so that the others may have
  // left: this one no longer needs a task that it can't reach.
  bool isOverWithout(const Error& error);

 private:
  struct End {
    std::string outcome;
    int exit_code = 0;
    std::string cause;  // empty: all is well
  };
  bool hasBegun() DTF_EXCLUDES(mutex_);
  void putBack() const;
  bool wasDoneBefore() DTF_EXCLUDES(mutex_);
  // False: no service manager replaces this process, so there is no note.
  bool note(uint64_t step, const Json& result) DTF_EXCLUDES(note_mutex_);
  // Writes the summary of the result for a chief that does not live to call done(), and which
  // systemd may not start again. It costs a warning that the disk refuses it.
  void keepResult() DTF_EXCLUDES(mutex_, note_mutex_, writing_mutex_);
  Json summaryOf(const End& end) DTF_EXCLUDES(mutex_, note_mutex_);
  void evaluated(uint64_t step, const train::Evaluation& evaluation) DTF_EXCLUDES(mutex_);
  void write(const End& end) DTF_EXCLUDES(mutex_, writing_mutex_);

  const cluster::TaskOptions& task_;
  const SystemClock clock_;
  const TimePoint started_ = clock_.now();
  const bool writes_;
  std::string earlier_summary_;  // the text of its file; empty: there is none
  std::optional<RunLock> lock_;  // of the run directory, when no launcher holds it for the job
  bool folder_lost_ = false;     // and said so; training thread

  // Held over the disk, which may hang, by those who write the summary: a signal may come while the
  // job ends by itself. It guards no member, so nobody else waits for it.
  Mutex writing_mutex_;
  Mutex note_mutex_;
  std::optional<daemons::RestartNote> note_ DTF_GUARDED_BY(note_mutex_);
  // Null: no process before this one had it, or the job has gone on since.
  Json earlier_result_ DTF_GUARDED_BY(note_mutex_);
  Mutex mutex_;
  std::optional<train::Progress> progress_ DTF_GUARDED_BY(mutex_);
  std::optional<train::Evaluation> evaluation_ DTF_GUARDED_BY(mutex_);  // the last one
  std::optional<JobResult> result_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::workerd
