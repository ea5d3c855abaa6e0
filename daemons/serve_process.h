#pragma once

// The process around a PartServer: `psd --serve`, `workerd --serve`. Makes the task's devices and
// the listening socket, and handles signals.

#include <memory>
#include <optional>

#include "common/base/file.h"
#include "common/cluster/options.h"
#include "common/net/credentials.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/net/signal_exit.h"
#include "common/serving/part_server.h"
#include "common/serving/task_devices.h"
#include "daemons/metrics_server.h"
#include "daemons/service_watch.h"

namespace dtf::daemons {

// Owns: all of the task.
// Threads: all calls on the thread of run(), which runs the loop.
// Blocks: run() until a signal.
class ServeProcess {
 public:
  // `listening`: the launcher's listening socket; without it, the task's address is bound here.
  // Errors: kUnavailable if the port is taken, or if the host lacks a GPU: a CPU never replaces it.
  ServeProcess(const cluster::TaskOptions& task, const net::Credentials& credentials,
               std::optional<Fd> listening);

  // Serves clients until SIGTERM or SIGINT. Returns 0 if there was no session at that time, else
  // 128 + n. A second signal ends the process at once.
  int run();

 private:
  void onSignal(int number);
  ServiceLook look() const;

  const serving::ComputingDevices devices_;
  net::Reactor reactor_;
  net::ReactorLoop loop_;
  serving::PartServer server_;
  net::SignalExit signals_;
  std::unique_ptr<net::Listener> listener_;
  int signal_ = 0;
  ServiceWatch watch_;
  std::unique_ptr<MetricsServer> metrics_;  // null: no metrics port
};

}  // namespace dtf::daemons
