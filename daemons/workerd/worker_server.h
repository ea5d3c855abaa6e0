#pragma once

// One workerd from start to end: its main thread listens and handles signals, the training thread
// runs the job.

#include <optional>

#include "common/base/file.h"
#include "common/base/thread.h"
#include "common/cluster/options.h"
#include "common/host/hosted_shard.h"
#include "common/net/credentials.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/net/signal_exit.h"
#include "common/wire/connection_set.h"
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
  // nothing to save: the ps, or the replica of its shard, hold all that a worker holds. A worker
  // that has trained stays for its shard as long. The peers of a shard get the reason of an error,
  // or of a signal without a launcher, before its connections close; a launcher reports the signals
  // of its tasks itself.
  // Errors: as runWorkerJob().
  int run();

 private:
  void onSignal(int number);
  void onRefused(int number, const Error& reason);
  kj::Promise<daemons::ServiceLook> look();
  void leave(int number);
  void tellOthers(const Error& reason);
  void leaveShard(const Error& reason);
  void serve(net::AcceptedSocket socket, net::ConnectionKind kind, const std::string& peer);
  bool waitsForOthers() const;
  void leaveLater(int number, std::string_view awaited);
  void endShard();
  void onTrained();
  void onShardEnded();
  void takeShardsResult();

  const cluster::TaskOptions task_;
  const net::Credentials credentials_;
  const daemons::StepTraces traces_;  // made before the recording threads
  WorkerStatus status_;
  net::Reactor reactor_;
  net::ReactorLoop loop_{reactor_};
  wire::ConnectionSet connections_;
  std::unique_ptr<net::Listener> listener_;
  // made once the address is bound: before, the job may be another process's
  std::optional<JobReport> report_;
  std::optional<host::HostedShard> shard_;  // where workers host shards that others use
  net::SignalExit signals_;
  std::optional<Error> error_;
  JobEnd ended_;
  bool shard_ended_ = false;  // nobody needs its values any more
  bool trained_ = false;
  bool stopping_ = false;
  struct Leaving {
    int exit_code;   // of the process, once the peers of its shard have the reason
    Thread telling;  // joinable: tells the others that this worker leaves
  };
  std::optional<Leaving> leaving_;
  kj::Promise<void> patience_ = nullptr;
  daemons::ServiceWatch watch_;
  std::unique_ptr<daemons::MetricsServer> metrics_;  // null: no metrics port
};

}  // namespace dtf::workerd
