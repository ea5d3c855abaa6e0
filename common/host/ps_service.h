#pragma once

// The RPC interfaces of psd (common/wire/ps.capnp) over a shard. kj stops here: the shard knows
// nothing of RPC.

#include <functional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/host/checkpoint_service.h"
#include "common/host/shard_host.h"
#include "common/net/channels/remote_memory.h"
#include "common/wire/arena_codec.h"
#include "common/wire/connection_set.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// The settings that a hello must match, the deadlines of the calls, and the state of the server
// that its replies contain.
struct ServiceOptions {
  std::string job;
  TaskId self;  // its name in hellos
  uint32_t workers = 0;
  std::vector<cluster::Address> worker_addresses;
  uint32_t ps_tasks = 0;
  cluster::Timeouts timeouts;
  CheckpointOptions checkpoint;
  cluster::DurabilitySpec durability{};
  bool shares_memory = true;                    // with workers on this host
  ShardHosts hosts{};                           // see wire::LinkOptions
  bool stop_wanted = false;                     // set on the control loop, sent in heartbeats
  Incarnation incarnation{};                    // of this ps
  std::string metrics_address{};                // empty: no metrics over HTTP
  uint64_t chunk_bytes = wire::kChunkBytesMax;  // see wire::LinkOptions
  std::shared_ptr<net::RemoteDomain> remote{};  // likewise

  // Returns the task that a hello calls `said`. A worker that hosts a shard calls as the ps of that
  // shard, but has its own name in messages and its own certificate.
  TaskId taskOf(TaskId said) const {
    return said.job == JobKind::kPs ? hosts.of(said.index) : said;
  }
  std::string name() const { return taskOf(self).name(); }
};

// The events of the workers' control sessions. They come on the control loop, after the hello that
// identifies the worker.
class WorkerSessions {
 public:
  virtual ~WorkerSessions() noexcept(false) = default;
  // `key`: the address of the connection, which the session ends with.
  virtual void opened(const void* key, TaskId worker, Incarnation incarnation) = 0;
  // A live process of the job has reported that the job failed.
  virtual void jobFailed(const Error& error) = 0;
  // A live process has left the job with an error, and the others go on.
  virtual void left(uint32_t rank, Incarnation incarnation, const std::string& reason) = 0;
  // The chief has saved the job, to continue it later.
  virtual void paused() = 0;
  // Rejects with the error with which this ps ends; after PsServer::leaveWith(), with the error of
  // a broken connection, which contains the reason.
  virtual kj::Promise<void> failed() = 0;
};

// Accepts a process of another ps as a follower, and returns the capability for its reports.
// Errors: as PeerNetwork::follow().
using Follow = std::function<schema::SyncLeader::Client(TaskId task, Incarnation incarnation,
                                                        schema::SyncFollower::Client follower)>;

// Returns the bootstrap capability of a control connection. `host`, `sessions` and `options`
// outlive the connection. Control loop only.
schema::PsGate::Client makeGate(ShardHost& host, WorkerSessions& sessions,
                                const ServiceOptions& options, Follow follow,
                                wire::ConnectionRef connection);

// Returns the bootstrap capability of a bulk connection. Data loop only.
schema::PsDataGate::Client makeDataGate(ShardHost& host, const ServiceOptions& options,
                                        wire::ConnectionRef connection);

// Errors: kBadConfig if the caller's cluster file differs from ours: another job, another callee, a
// rank that is too high, other addresses of workers, another durability. The addresses of ps are
// not compared: the connection proves the address of this ps, which may be another from elsewhere
// (a forwarded port).
void checkHello(const ServiceOptions& options, schema::Hello::Reader hello);

// Returns the reply to `status`.
std::string statusJson(const ServiceOptions& options, const shard::ShardStatus& status);

}  // namespace dtf::host
