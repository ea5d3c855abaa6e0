#pragma once

// One psd from start to end: listens, serves control connections on the control loop and bulk
// connections on the data loop, waits for workers by name, ends when all have finished.

#include <map>
#include <memory>

#include "common/cluster/options.h"
#include "daemons/connection_set.h"
#include "daemons/daemon.h"
#include "daemons/psd/ps_service.h"
#include "daemons/psd/shard_host.h"
#include "daemons/psd/sync_peers.h"

namespace dtf::psd {

// Owns: all of the ps.  Borrows: nothing.  Threads: the thread that calls run(), which is the
// control loop. Blocks: run() until the job has ended.
class PsServer final : WorkerSessions {
 public:
  // `listening`: a socket that listens already (the launcher's); else the task's address is bound
  // here.
  PsServer(const cluster::TaskOptions& task, std::optional<Fd> listening);
  ~PsServer() noexcept(false);

  // Returns 0 when every worker has finished, 128 + n on a signal. Errors: kUnavailable for a
  // worker that never came or was lost without a replacement, naming it; kUnavailable when the port
  // is taken.
  int run();

  // Ends run() as if the job had finished. Any thread.
  void stop();

  std::string address() const { return listener_->address(); }

 private:
  void opened(const void* key, TaskId worker, Incarnation incarnation) override;
  void onSocket(Fd socket, net::ConnectionKind kind, std::string peer);
  void onClosed(const void* key);
  kj::Promise<void> watch();
  void judge(const ps::ShardStatus& status);
  void onSignal(int number);
  void logLost(const ps::ShardStatus& status);
  void end(std::optional<Error> error, int code);

  struct Session {
    TaskId worker;
    Incarnation incarnation;
  };

  const cluster::TaskOptions task_;
  ServiceOptions options_;
  SystemClock clock_;
  const TimePoint started_;
  net::Reactor control_;
  PeerNetwork peers_;
  std::shared_ptr<net::BufferPool> bulk_pool_;
  std::unique_ptr<daemons::ConnectionSet> bulk_;  // data loop: made and destroyed there
  ShardHost host_;  // after bulk_: its thread, which ends bulk_, ends first
  daemons::ConnectionSet connections_;
  std::map<const void*, Session> sessions_;
  // By rank: the last process whose connection was closed, and the last whose loss was logged.
  std::map<uint32_t, Incarnation> closed_;
  std::map<uint32_t, Incarnation> lost_;
  std::unique_ptr<net::Listener> listener_;
  daemons::SignalExit signals_;
  TimePoint reported_;        // when the log last said who is awaited
  TimePoint complete_since_;  // when nobody was missing last
  std::optional<Error> error_;
  bool ending_ = false;
  int stop_signal_ = 0;  // that asked us to end
  TimePoint stop_deadline_;
  int exit_code_ = 0;
  kj::Promise<void> watching_ = nullptr;
  kj::Promise<void> leaving_ = nullptr;
};

}  // namespace dtf::psd
