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
#include "common/wire/arena_codec.h"
#include "common/wire/connection_set.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// What a hello is checked against, and what the calls wait at most.
struct ServiceOptions {
  std::string job;
  TaskId self;  // as hellos have it
  uint32_t workers = 0;
  std::vector<cluster::Address> worker_addresses;
  uint32_t ps_tasks = 0;
  cluster::Timeouts timeouts;
  CheckpointOptions checkpoint;
  cluster::DurabilitySpec durability{};
  bool shares_memory = true;                    // with workers on this host
  ShardHosts hosts{};                           // see wire::LinkOptions
  bool stop_wanted = false;                     // set on the control loop: heartbeats pass it on
  Incarnation incarnation{};                    // of this ps
  std::string metrics_address{};                // empty: it answers nothing over HTTP
  uint64_t chunk_bytes = wire::kChunkBytesMax;  // see wire::LinkOptions

  // Returns the task that speaks as `said` in a hello: its name and certificate are its own.
  TaskId taskOf(TaskId said) const {
    return said.job == JobKind::kPs ? hosts.of(said.index) : said;
  }
  std::string name() const { return taskOf(self).name(); }
};

// Called on the control loop when the control connection of a worker is known to be that worker's.
class WorkerSessions {
 public:
  virtual ~WorkerSessions() noexcept(false) = default;
  // `key` is the connection's address; a session ends when its connection does.
  virtual void opened(const void* key, TaskId worker, Incarnation incarnation) = 0;
  // A live process of the job says that the job has failed.
  virtual void jobFailed(const Error& error) = 0;
  // A live process has left the job to the others, with an error.
  virtual void left(uint32_t rank, Incarnation incarnation, const std::string& reason) = 0;
  // The chief has saved the job, which is left to go on later.
  virtual void paused() = 0;
  // Rejects with the error that this ps ends with, or with a broken connection's that has the
  // reason, see PsServer::leaveWith().
  virtual kj::Promise<void> failed() = 0;
};

// Takes a process of another ps for a follower and returns what it speaks through; throws for
// whoever is none.
using Follow = std::function<schema::SyncLeader::Client(TaskId task, Incarnation incarnation,
                                                        schema::SyncFollower::Client follower)>;

// Bootstrap of a control connection. `host`, `sessions` and `options` outlive the connection.
// Control loop only.
schema::PsGate::Client makeGate(ShardHost& host, WorkerSessions& sessions,
                                const ServiceOptions& options, Follow follow,
                                wire::ConnectionRef connection);

// Bootstrap of a bulk connection. Data loop only.
schema::PsDataGate::Client makeDataGate(ShardHost& host, const ServiceOptions& options,
                                        wire::ConnectionRef connection);

// Errors: kBadConfig when the caller's cluster differs from ours: another job, another task meant,
// a rank too high, other addresses of workers, another durability. Those of the ps are not
// compared: reaching this ps proves its own, and from elsewhere it may have another (a forwarded
// port).
void checkHello(const ServiceOptions& options, schema::Hello::Reader hello);

// What `status` answers.
std::string statusJson(const ServiceOptions& options, const shard::ShardStatus& status);

}  // namespace dtf::host
