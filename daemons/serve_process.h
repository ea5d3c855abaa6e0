#pragma once

// The process around a PartServer: `psd --serve`, `workerd --serve`. The devices that the cluster
// file gives the task, the listening socket, signals.

#include <memory>
#include <optional>
#include <vector>

#include "common/cluster/options.h"
#include "common/runtime/computing_device.h"
#include "daemons/daemon.h"
#include "daemons/metrics_server.h"
#include "daemons/part_server.h"
#include "daemons/service_watch.h"

namespace dtf::daemons {

using ComputingDevices = std::vector<std::unique_ptr<runtime::ComputingDevice>>;

// Owns: all of the task.
// Threads: the thread that calls run(), which is the loop.
// Blocks: run() until a signal.
class ServeProcess {
 public:
  // `listening`: a socket that listens already (the launcher's); else the task's address is bound
  // here.
  // Errors: kUnavailable when the port is taken, or the host lacks a GPU, which is never replaced
  // by a CPU.
  ServeProcess(const cluster::TaskOptions& task, const net::Credentials& credentials,
               std::optional<Fd> listening);

  // Waits for clients until SIGTERM or SIGINT. Returns 0 when there was no session then, else
  // 128 + n. At a second signal the process ends at once.
  int run();

 private:
  void onSocket(net::AcceptedSocket socket, std::string peer);
  void onSignal(int number);
  ServiceLook look() const;

  const ComputingDevices devices_;
  net::Reactor reactor_;
  net::ReactorLoop loop_;
  PartServer server_;
  SignalExit signals_;
  std::unique_ptr<net::Listener> listener_;
  int signal_ = 0;
  ServiceWatch watch_;
  std::unique_ptr<MetricsServer> metrics_;  // null: nobody is to ask
};

}  // namespace dtf::daemons
