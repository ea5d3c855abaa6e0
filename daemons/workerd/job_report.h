#pragma once

// The chief's report on the job: to its launcher, or, if started by hand, on stdout and in
// <run_dir>/summary.json (launcher/USING.md, "Files of a run").

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

// Reports the shares of the ps: the notify line "model" for the launcher, and event=placement with
// `table` in the log.
void reportModel(const graph::Placement& placement, const std::string& table);

// Reports a checkpoint: the notify line "checkpoint", and event=checkpoint in the log.
void reportCheckpoint(const train::SavedCheckpoint& saved);

// Reports the cost of a lost ps to the launcher.
void reportWentBack(const train::WentBack& back);

// Reports to the launcher from where the job goes on, and the steps lost.
void reportGoesOn(const train::GoesOn& start, uint64_t steps);

struct JobResult {
  train::TrainingResult training;
  std::optional<train::Evaluation> evaluation{};
  std::optional<train::CheckpointStatus> checkpoints{};   // none: the job keeps none
  std::optional<summary::EventWriterStatus> summaries{};  // none: the job writes none
  std::optional<train::SnapshotStatus> snapshots{};       // none: the ps keep none
  std::optional<uint64_t> parameters_digest{};            // none: a ps was lost before the end
  Json left_out{};                                        // leftOutJson()
  bool is_unsaved = false;    // the last checkpoint failed: this process ends with that error
  std::string ended_early{};  // why; empty: it has not
  std::optional<train::PastEvaluation> best{};  // of the kept best checkpoint; none: not kept
  std::string best_metric{};                    // it is the best by this one

  bool isDone() const { return !training.stopped || !ended_early.empty(); }
  // The job had come to its end before this process: nothing was trained.
  bool wasDone() const {
    return isDone() && training.batches == 0 && training.first_step_number == training.global_step;
  }
};

// The report of one process. A worker that is not the chief reports nothing. A launcher receives
// each line at once and writes the summary itself. By hand, the summary is written once, by done(),
// failed() or interrupted(), so that it agrees with the exit code.
// Owns: the reported values.
// Borrows: `task`.
// Threads: thread-safe.
// Blocks: done(), failed() and interrupted() on the disk; other calls only on the launcher's pipe.
class JobReport {
 public:
  // The time that interrupted() waits for the disk, which may hang.
  static constexpr auto kLastWordsMax = std::chrono::seconds(1);

  // By hand: takes the run directory's lock, as dtf-launch does otherwise, and registers the run
  // (run_registry.h; a failure costs a warning). Removes the summary of an earlier run; failed()
  // restores it if this run has not begun, and done() if the earlier run had ended the job already.
  // If systemd started this process in place of another, it reads the other's note.
  // Errors: kCannotWrite; kUnavailable if another job runs in that directory.
  explicit JobReport(const cluster::TaskOptions& task);

  // This run trains from here on: its end, whatever it is, has a summary of its own.
  void begins() DTF_EXCLUDES(mutex_);
  // Reports an evaluation in `progress` as evaluated() does.
  void progress(const train::Progress& progress);
  void result(const JobResult& result);

  void done(int exit_code = 0);     // Errors: kCannotWrite, for the file and for stdout
  void failed(const Error& error);  // no errors of its own: `error` is more important
  void interrupted(int signal, const std::string& cause);  // ditto
  bool writes() const { return writes_; }                  // by hand, the chief

  // Returns whether the previous process was killed after the job's result: the other tasks may
  // have left, so `error`, an unreachable task, is no failure.
  bool isOverWithout(const Error& error);

 private:
  struct End {
    std::string outcome;
    int exit_code = 0;
    std::string cause;  // empty: success
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
  std::string earlier_summary_;  // the text of its file; empty: none
  std::optional<RunLock> lock_;  // of the run directory, if no launcher holds it for the job
  bool folder_lost_ = false;     // logged already; training thread

  // Held by writers of the summary during disk access, which may hang: a signal may come while the
  // job ends by itself. Guards no member, so nothing else waits for it.
  Mutex writing_mutex_;
  Mutex note_mutex_;
  std::optional<daemons::RestartNote> note_ DTF_GUARDED_BY(note_mutex_);
  // Null: no previous process had a result, or the job has gone on since.
  Json earlier_result_ DTF_GUARDED_BY(note_mutex_);
  Mutex mutex_;
  bool has_begun_ DTF_GUARDED_BY(mutex_) = false;
  std::optional<train::Progress> progress_ DTF_GUARDED_BY(mutex_);
  std::optional<train::Evaluation> evaluation_ DTF_GUARDED_BY(mutex_);  // the newest
  std::optional<JobResult> result_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::workerd
