#pragma once

// One workerd from start to end: its main thread listens and handles signals, the training thread
// runs the job.

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
// Threads: all calls on the thread of run().
// Blocks: run() until the job has ended.
class WorkerServer {
 public:
  // `listening`: the launcher's listening socket; without it, the task's address is bound here.
  WorkerServer(const cluster::TaskOptions& task, const net::Credentials& credentials,
               std::optional<Fd> listening);

  // Returns 0 if the job is done, also after a signal that requested its end, if the last
  // checkpoint was written; in that case kPausedExitCode with launch.on_sigterm: pause. Returns 128
  // + SIGTERM if a ps ended on request and the job keeps no checkpoints. The process ends at once
  // with 128 + n at a second signal n, timeouts.stop_seconds after the first, or if there is
  // nothing to save: the ps hold all that a worker holds.
  // Errors: as runWorkerJob().
  int run();

 private:
  void onSignal(int number);
  void onRefused(int number, const Error& reason);
  kj::Promise<daemons::ServiceLook> look();
  [[noreturn]] void leave(int number);

  const cluster::TaskOptions task_;
  const net::Credentials credentials_;
  const daemons::StepTraces traces_;  // made before the recording threads
  WorkerStatus status_;
  net::Reactor reactor_;
  net::ReactorLoop loop_{reactor_};
  daemons::ConnectionSet connections_;
  std::unique_ptr<net::Listener> listener_;
  // made once the address is bound: before, the job may be another process's
  std::optional<JobReport> report_;
  daemons::SignalExit signals_;
  std::optional<Error> error_;
  JobEnd ended_;
  bool stopping_ = false;
  kj::Promise<void> patience_ = nullptr;
  daemons::ServiceWatch watch_;
  std::unique_ptr<daemons::MetricsServer> metrics_;  // null: no metrics port
};

}  // namespace dtf::workerd
