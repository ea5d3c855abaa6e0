#pragma once

// `--json`: what happens, as JSON lines on stdout, for programs. Every line has "schema", "event"
// and "time".

#include "common/base/json.h"
#include "launcher/exit_status.h"
#include "launcher/notice.h"
#include "launcher/output_queue.h"
#include "launcher/spawner.h"

namespace dtf::launcher {

// Events: started {task, pid}, ready {task}, left_out {records, reasons}, model {variables,
// parameters, ps_bytes}, restored {step}, went_back {step, steps_lost, reason}, progress {...},
// evaluation {step, loss, accuracy}, checkpoint {step, ...}, exchange {measured_ms, predicted_ms},
// ended {task, exit_code}, restarting {task, restarts}, and at the very end summary {...}, the
// content of summary.json.
// Owns: a console for the descriptor, with its bound.
// Borrows: the descriptor.
// Threads: loop-thread only.
// Blocks: only summary().
class EventWriter {
 public:
  // `enabled` false: every call does nothing.
  EventWriter(int fd, bool enabled) : queue_(fd), enabled_(enabled) {}

  void started(TaskId id, pid_t pid);
  void ready(TaskId id);
  void serving(const std::vector<std::string>& targets);
  void leftOut(const LeftOutNotice& notice);
  void model(const ModelNotice& notice);
  void restored(const RestoredNotice& notice);
  void wentBack(const WentBackNotice& notice);
  void progress(const ProgressNotice& notice);
  void evaluation(const EvaluationNotice& notice);
  void checkpoint(const CheckpointNotice& notice);
  void exchange(double measured_seconds, double predicted_seconds);
  void ended(TaskId id, const ExitStatus& status);
  void restarting(TaskId id, uint32_t restarts);
  // The last line. Waits for a slow reader, ten seconds at most while it takes nothing.
  // False: not all of what was written has reached stdout.
  bool summary(const Json& summary);

  void pump() { queue_.pump(); }

 private:
  void write(const char* event, Json fields);

  OutputQueue queue_;
  const bool enabled_;
};

}  // namespace dtf::launcher
