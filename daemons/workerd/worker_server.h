#pragma once

// One workerd from start to end: its main thread listens and answers signals, the training thread
// does the job.

#include <optional>

#include "common/base/thread.h"
#include "common/cluster/options.h"
#include "daemons/connection_set.h"
#include "daemons/daemon.h"
#include "daemons/metrics_server.h"
#include "daemons/service_watch.h"
#include "daemons/step_traces.h"
#include "daemons/workerd/job_report.h"
#include "daemons/workerd/worker_job.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

// Owns: both threads' objects.
// Threads: the thread that calls run().
// Blocks: run() until the job has ended.
class WorkerServer {
 public:
  // `listening`: a socket that listens already (the launcher's); else the task's address is bound
  // here.
  WorkerServer(const cluster::TaskOptions& task, const net::Credentials& credentials,
               std::optional<Fd> listening);

  // Returns 0 when the job is done, also when a signal asked for its end and the last checkpoint
  // was written; then kPausedExitCode with launch.on_sigterm: pause; 128 + SIGTERM when a ps was
  // told to end and the job keeps no checkpoints. The process ends at once with 128 + n at a second
  // signal, timeouts.stop_seconds after the first, or when there is nothing to save: what a worker
  // holds, the ps hold too.
  // Errors: those of runWorkerJob().
  int run();

 private:
  void onSignal(int number);
  void onRefused(int number, const Error& reason);
  kj::Promise<daemons::ServiceLook> look();
  [[noreturn]] void leave(int number);

  const cluster::TaskOptions task_;
  const net::Credentials credentials_;
  const daemons::StepTraces traces_;  // before what records
  WorkerStatus status_;
  net::Reactor reactor_;
  net::ReactorLoop loop_{reactor_};
  daemons::ConnectionSet connections_;
  std::unique_ptr<net::Listener> listener_;
  std::optional<JobReport> report_;  // once the address is ours: before, the job may be another's
  daemons::SignalExit signals_;
  std::optional<Error> error_;
  JobEnd ended_;
  bool stopping_ = false;
  kj::Promise<void> patience_ = nullptr;
  daemons::ServiceWatch watch_;
  std::unique_ptr<daemons::MetricsServer> metrics_;  // null: nobody is to ask
};

}  // namespace dtf::workerd
