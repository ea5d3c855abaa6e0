#pragma once

// One shard's server from start to end: it serves control connections on the control loop and bulk
// connections on the data loop, waits for workers by name, and ends when all have finished. Its
// threads are in hosted_shard.h.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "common/base/awake_clock.h"
#include "common/cluster/options.h"
#include "common/host/ps_service.h"
#include "common/host/shard_host.h"
#include "common/host/sync_peers.h"
#include "common/wire/connection_set.h"
#include "common/wire/ps/replica_link.h"

namespace dtf::host {

// The shard's status, and the load of the connections on both loops.
struct PsReport {
  shard::ShardStatus shard;
  uint64_t elements = 0;  // of the shard's parameters
  wire::ConnectionLoad control, bulk;
};

// The server of a shard.
// Owns: the shard, the sessions and the connections, but not the loops.
// Borrows: the loops (must outlive this).
// Threads: made, used and destroyed on the control loop, except startData(), stopData() and
// serveBulk(): data loop.
// Blocks: stopData(), until the updates that run have ended.
class PsServer final : WorkerSessions {
 public:
  // `disk`: the loop for reading and writing files, which may block. `snapshots`: their folder, in
  // a job with `durability: snapshot`.
  PsServer(const cluster::TaskOptions& task, net::Loop& control, net::Loop& data, net::Loop& disk,
           FileSystem& file_system, checkpoint::SnapshotPlace snapshots = {},
           uint64_t chunk_bytes = wire::kChunkBytesMax);
  ~PsServer() noexcept(false) override;

  // The first and the last call on the data loop.
  void startData(std::unique_ptr<optimizer::UpdateRunner> runner);
  void stopData();

  // Starts to wait for workers. The job ends here when every worker has finished, when a worker
  // never came or was lost without a replacement (result() then throws kUnavailable with its name),
  // or by end(). This calls `ending`, after which no connection may come, and `ended` when the last
  // replies have left.
  void start(std::function<void()> ending, std::function<void()> ended);

  // Returns the bootstrap capability of a process that serves more than `gate`.
  using Extend = std::function<capnp::Capability::Client(schema::PsGate::Client gate,
                                                         const wire::ConnectionRef& connection)>;
  // `extend`: null if the process serves nothing but the gate.
  void serveControl(kj::Own<net::MessageStream> stream, std::string peer,
                    const Extend& extend = nullptr);
  void serveBulk(kj::Own<net::MessageStream> stream, std::string peer);

  // Ends the job here, with the error or with the exit code. A second call does not wait for the
  // last replies.
  void end(std::optional<Error> error, int code) { end(std::move(error), code, Duration{0}); }

  // Ends the job here for a process that leaves it while the others go on. They see a broken
  // connection with the error as its reason, and wait for another process of this task.
  void leaveWith(const Error& error);

  // Returns whether the job has ended here. The last replies may still be on their way, see
  // start().
  bool isEnding() const { return ending_; }

  // Handles a signal. Heartbeats pass it on to the workers, which save the job and finish. This ps
  // ends when they have finished, timeouts.stop_seconds later, or at a second signal. The exit code
  // is 0 if nothing is lost: no worker ever came, or the job was done or saved; otherwise it is
  // 128 + `number`. With launch.on_sigterm: pause, kPausedExitCode replaces 0 unless the job was
  // done.
  void onSignal(int number);

  // Returns the report, by way of the data loop: a reply shows that parameters are served, too.
  // Fails once this ps has an error to end with.
  kj::Promise<PsReport> report();

  // Adds the address for HTTP to this ps's status.
  void tellsMetricsAt(std::string address) { options_.metrics_address = std::move(address); }

  // Returns the exit code, or throws the error that ended this ps.
  int result() const;
  // Returns whether the job is done or saved, so that the snapshots of this ps have no use left.
  bool endedWell() const { return !error_ && (exit_code_ == 0 || paused_); }

  const ServiceOptions& options() const { return options_; }
  const std::shared_ptr<net::BufferPool>& bulkPool() const { return bulk_pool_; }
  ShardHost& host() { return host_; }

 private:
  std::unique_ptr<replication::ReplicaLink> replicaLink();
  void opened(const void* key, TaskId worker, Incarnation incarnation) override;
  void jobFailed(const Error& error) override;
  void left(uint32_t rank, Incarnation incarnation, const std::string& reason) override;
  void paused() override { paused_ = true; }
  void end(std::optional<Error> error, int code, Duration open);
  void leave(Duration linger);
  kj::Promise<void> failed() override { return failed_.addBranch(); }
  void onClosed(const void* key);
  kj::Promise<void> watch();
  void judge(const shard::ShardStatus& status);
  void judgeMissing(const shard::ShardStatus& status, bool awaits, bool any_joined);
  void logLost(const shard::ShardStatus& status);
  std::optional<std::string> endOf(uint32_t rank, Incarnation incarnation) const;
  struct Departure;
  const Departure* firstDeparture(const shard::ShardStatus& status) const;
  bool cutShort(const shard::ShardStatus& status) const;

  struct Session {
    TaskId worker;
    Incarnation incarnation;
    auto operator<=>(const Session&) const = default;
  };
  struct Departure {  // of a worker that sent a reason
    uint32_t rank = 0;
    Incarnation incarnation;
    std::string reason;
  };
  bool isConnected(const Session& session) const;
  void loseDisconnected();
  void lose(const Session& session);

  const cluster::TaskOptions task_;
  ServiceOptions options_;
  net::Loop& control_;
  const AwakeClock clock_;
  const TimePoint started_;
  PeerNetwork peers_;
  std::shared_ptr<net::BufferPool> bulk_pool_;
  std::unique_ptr<wire::ConnectionSet> bulk_;  // data loop: made and destroyed there
  ShardHost host_;
  wire::ConnectionSet connections_;
  std::map<const void*, Session> sessions_;
  std::map<Session, TimePoint>
      disconnected_;  // without a connection, since the time when the last one closed
  // By rank: the last process lost because its connection closed, and the last one logged as lost.
  std::map<uint32_t, Incarnation> closed_;
  std::map<uint32_t, Incarnation> lost_;
  std::vector<Departure> departures_;  // the last one of each rank, in order of arrival
  TimePoint reported_;                 // when the log last named the missing workers
  TimePoint complete_since_;           // the last time at which no worker was missing
  std::optional<Error> error_;
  std::function<void()> on_ending_;
  std::function<void()> on_ended_;
  bool ending_ = false;
  std::set<uint32_t> came_;  // ranks
  int stop_signal_ = 0;      // the first signal; 0: none
  bool paused_ = false;      // the chief has paused the job
  TimePoint stop_deadline_;
  int exit_code_ = 0;
  kj::Own<kj::PromiseFulfiller<void>> failing_;  // end() with an error rejects it
  kj::ForkedPromise<void> failed_ = nullptr;
  kj::Promise<void> watching_ = nullptr;
  kj::Promise<void> leaving_ = nullptr;    // while workers may still come
  kj::Promise<void> lingering_ = nullptr;  // until the last replies have left
};

}  // namespace dtf::host
