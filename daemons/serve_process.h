#pragma once

// The process around a PartServer: `psd --serve`, `workerd --serve`. Its CPU, the listening socket,
// signals.

#include <optional>

#include "common/cluster/options.h"
#include "common/runtime/compute_pool.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/kernel.h"
#include "daemons/daemon.h"
#include "daemons/metrics_server.h"
#include "daemons/part_server.h"
#include "daemons/service_watch.h"

namespace dtf::daemons {

// Owns: all of the task.
// Threads: the thread that calls run(), which is the loop.
// Blocks: run() until a signal.
class ServeProcess {
 public:
  // `listening`: a socket that listens already (the launcher's); else the task's address is bound
  // here.
  ServeProcess(const cluster::TaskOptions& task, std::optional<Fd> listening);

  // Waits for clients until SIGTERM or SIGINT. Returns 0 when there was no session then, else
  // 128 + n. At a second signal the process ends at once.
  // Errors: kUnavailable when the port is taken.
  int run();

 private:
  void onSocket(net::AcceptedSocket socket, std::string peer);
  void onSignal(int number);
  ServiceLook look() const;

  runtime::ComputePool pool_;
  runtime::KernelTable kernels_;
  runtime::CpuDevice cpu_;
  net::Reactor reactor_;
  net::ReactorLoop loop_{reactor_};
  PartServer server_;
  SignalExit signals_;
  std::unique_ptr<net::Listener> listener_;
  int signal_ = 0;
  ServiceWatch watch_;
  std::unique_ptr<MetricsServer> metrics_;  // null: nobody is to ask
};

}  // namespace dtf::daemons
