#pragma once

// The process around a host::PsServer: its threads, the listening socket, signals.

#include <memory>
#include <optional>
#include <string>

#include "common/base/file.h"
#include "common/cluster/options.h"
#include "common/host/hosted_shard.h"
#include "common/net/credentials.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/net/signal_exit.h"
#include "daemons/metrics_server.h"
#include "daemons/service_watch.h"
#include "daemons/step_traces.h"

namespace dtf::psd {

// Owns: all of the ps.
// Borrows: nothing.
// Threads: the thread that calls run(), which is the control loop.
// Blocks: run() until the job has ended.
class PsProcess {
 public:
  // `listening`: a socket that listens already (the launcher's); else the task's address is bound
  // here. `chunk_bytes`: see wire::LinkOptions.
  PsProcess(const cluster::TaskOptions& task, const net::Credentials& credentials,
            std::optional<Fd> listening, uint64_t chunk_bytes = wire::kChunkBytesMax);
  ~PsProcess() noexcept(false);

  // Returns 0 when every worker has finished; after signal n only if the job was done or saved, or
  // no worker had come; else 128 + n. kPausedExitCode: see host::PsServer::onSignal().
  // Errors: kUnavailable for a worker that never came or was lost without a replacement, naming it;
  // kUnavailable when the port is taken.
  int run();

  // Ends run() as if the job had finished. Any thread.
  void stop();

  std::string address() const { return listener_->address(); }

 private:
  void onSignal(int number);
  kj::Promise<daemons::ServiceLook> look();

  const daemons::StepTraces traces_;  // made before the recording threads
  net::Reactor control_;
  net::ReactorLoop control_loop_;
  std::optional<host::HostedShard> shard_;
  std::unique_ptr<net::Listener> listener_;
  net::SignalExit signals_;
  const std::filesystem::path timelines_;
  // Last: they ask the server.
  daemons::ServiceWatch watch_;
  std::unique_ptr<daemons::MetricsServer> metrics_;  // null: nobody is to ask
};

}  // namespace dtf::psd
