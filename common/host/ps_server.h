#pragma once

// One ps task from start to end: serves control connections on the control loop and bulk
// connections on the data loop, waits for workers by name, ends when all have finished. The threads
// and the listening socket around it are in ps_process.h.

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

// What there is to say, from both loops.
struct PsReport {
  shard::ShardStatus shard;
  uint64_t elements = 0;  // of the shard's parameters
  wire::ConnectionLoad control, bulk;
};

// Owns: all of the ps but its loops.
// Borrows: the loops (must outlive this).
// Threads: made, used and destroyed on the control loop, except startData(), stopData() and
// serveBulk(): data loop.
// Blocks: stopData(), until the updates that run have ended.
class PsServer final : WorkerSessions {
 public:
  // `disk` is where files are read and written: blocking there holds up nobody. `snapshots`: where
  // they are kept, for a job with `durability: snapshot`.
  PsServer(const cluster::TaskOptions& task, net::Loop& control, net::Loop& data, net::Loop& disk,
           FileSystem& file_system, checkpoint::SnapshotPlace snapshots = {},
           uint64_t chunk_bytes = wire::kChunkBytesMax);
  ~PsServer() noexcept(false) override;

  // First and last on the data loop.
  void startData(std::unique_ptr<optimizer::UpdateRunner> runner);
  void stopData();

  // Starts to wait for workers. When every worker has finished, when one never came or was lost
  // without a replacement (result() throws it, kUnavailable, by name), or after end(), `ending` is
  // called (no more connections, please), and `ended` when the last answers have left.
  void start(std::function<void()> ending, std::function<void()> ended);

  // Returns the bootstrap capability of a process that serves more than `gate`.
  using Extend = std::function<capnp::Capability::Client(schema::PsGate::Client gate,
                                                         const wire::ConnectionRef& connection)>;
  // `extend`: null: the gate is all.
  void serveControl(kj::Own<net::MessageStream> stream, std::string peer,
                    const Extend& extend = nullptr);
  void serveBulk(kj::Own<net::MessageStream> stream, std::string peer);

  // Ends the job here: with the error, or with the exit code. A second call does not wait for the
  // last answers.
  void end(std::optional<Error> error, int code) { end(std::move(error), code, Duration{0}); }

  // Ends the job here for a process that leaves it while the others go on. They see a broken
  // connection with the error as its reason, and wait for another process of this task.
  void leaveWith(const Error& error);

  // Whether the job has ended here. The last answers may still be on their way, see start().
  bool isEnding() const { return ending_; }

  // A signal. Workers in the middle of a job are asked to save and end it; this ps goes when they
  // have finished, or timeouts.stop_seconds later, or at a second signal. The exit code is 0 when
  // nothing is lost by it: no worker ever came, or the job was done or saved; else 128 + `number`.
  // With launch.on_sigterm: pause it is kPausedExitCode in place of 0, unless the job was done.
  void onSignal(int number);

  // By way of the data loop: it says that parameters are served, too. Fails when this ps is about
  // to end.
  kj::Promise<PsReport> report();

  // Where this ps answers over HTTP: part of its status from now on.
  void tellsMetricsAt(std::string address) { options_.metrics_address = std::move(address); }

  // What the process returns, or the error that ended it.
  int result() const;
  // The job is done, or saved: nobody needs the snapshots of this ps any more.
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
  struct Departure {  // of a worker that said why
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
      disconnected_;  // whose connections have closed, and when the last did
  // By rank: the last process that was lost for that, and the last whose loss was logged.
  std::map<uint32_t, Incarnation> closed_;
  std::map<uint32_t, Incarnation> lost_;
  std::vector<Departure> departures_;  // of each rank the last, in the order that they came
  TimePoint reported_;                 // when the log last said who is awaited
  TimePoint complete_since_;           // when nobody was missing last
  std::optional<Error> error_;
  std::function<void()> on_ending_;
  std::function<void()> on_ended_;
  bool ending_ = false;
  std::set<uint32_t> came_;  // ranks
  int stop_signal_ = 0;      // that asked us to end
  bool paused_ = false;      // the job, by its chief
  TimePoint stop_deadline_;
  int exit_code_ = 0;
  kj::Own<kj::PromiseFulfiller<void>> failing_;  // by end() with an error
  kj::ForkedPromise<void> failed_ = nullptr;
  kj::Promise<void> watching_ = nullptr;
  kj::Promise<void> leaving_ = nullptr;    // while workers may still come
  kj::Promise<void> lingering_ = nullptr;  // for the last answers to leave
};

}  // namespace dtf::host
