#pragma once

// A task that serves in the process of a program: `psd --serve` and `workerd --serve` as an object.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/cluster/spec.h"
#include "common/net/credentials.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/net/signal_exit.h"
#include "common/serving/part_server.h"
#include "common/serving/task_devices.h"

namespace dtf::serving {

struct ServingOptions {
  TaskId task;  // one of the cluster's (DTF_CHECK)
  cluster::ClusterSpec cluster;
  net::Credentials credentials;
  uint64_t bytes_max = 0;  // of all sessions' data; 0: the task's share of the host's memory
  // The first SIGTERM or SIGINT stops it, the second ends the process. The program's own handlers
  // of both return with the destructor.
  bool handles_signals = false;
};

// Serves from construction to destruction, which ends the sessions of its clients.
// Owns: devices, server, listening socket, the thread of their loop.
// Threads: thread-safe; not in a handler of signals.
// Blocks: join(); the destructor, until running computations have ended.
// Errors: the constructor: as listen() and makeDevices().
class ServingTask {
 public:
  struct End {
    std::string reason;
    int signal = 0;  // 0: stop() was called
  };

  explicit ServingTask(const ServingOptions& options);
  ~ServingTask();
  ServingTask(const ServingTask&) = delete;
  ServingTask& operator=(const ServingTask&) = delete;

  TaskId task() const { return task_; }
  // The host of the cluster, with the port that is bound.
  const cluster::Address& address() const { return address_; }
  size_t sessions() const;

  // Waits until stop() or a signal; without `patience` for ever. nullopt: it has passed.
  std::optional<End> join(std::optional<Duration> patience);
  // The first call counts. Clients are served on until the destructor.
  void stop(std::string reason);

 private:
  void open(const ServingOptions& options);
  void close();
  void onSignal(int number);
  void end(End end);

  const TaskId task_;
  const ComputingDevices devices_;
  cluster::Address address_;
  Mutex mutex_;
  CondVar ended_;
  std::optional<End> end_ DTF_GUARDED_BY(mutex_);
  bool was_signalled_ DTF_GUARDED_BY(mutex_) = false;
  // Made, used and destroyed on the loop.
  std::unique_ptr<PartServer> server_;
  std::unique_ptr<net::SignalExit> signals_;
  std::unique_ptr<net::Listener> listener_;
  mutable net::IoThread loop_;  // last: it ends before its users
};

}  // namespace dtf::serving
