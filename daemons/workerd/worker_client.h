#pragma once

// A worker's interface to the parameters, here or on parameter servers.

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/cluster/options.h"
#include "common/exchange/exchange_client.h"
#include "common/net/credentials.h"
#include "common/runtime/compute_pool.h"
#include "common/wire/ps/ps_link.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

// Threads: parameters() on the training thread; the rest is thread-safe.
// Blocks: as exchange::ExchangeClient and checkpoint::CheckpointClient; fail() for `patience` at
// most.
class WorkerClient {
 public:
  virtual ~WorkerClient() = default;

  virtual exchange::ExchangeClient& parameters() = 0;
  // For the chief, once the model is declared. `disk_seconds`: the time limit for writing or
  // reading a shard. The result must not outlive this.
  virtual std::unique_ptr<checkpoint::CheckpointClient> checkpoints(double disk_seconds) = 0;

  // Requests the end of the job after the running steps.
  virtual void requestStop(WorkerStatus::Refused refused) = 0;
  // Announces to all that the job is saved and will be continued later.
  virtual void pause() = 0;
  // Returns the ps that are ending at another's request. A request to stop made before this call is
  // then ahead of all later calls.
  virtual std::set<uint32_t> toldToEnd() = 0;
  // Reports to all why this worker ends.
  virtual void fail(const Error& error, wire::FailureOf failure_of, Duration patience) = 0;
  // Makes every call fail with `error`, now and later.
  virtual void endWith(const Error& error) = 0;

  // Calls `answer` on the loop of the heartbeats when its turn comes; at once if there are no
  // heartbeats.
  virtual void askHeartbeats(std::function<void()> answer) = 0;
};

// Returns `ps/0, ps/1 were told to end`, for a job without checkpoints: its workers don't request a
// stop but end at once. `hosts`: of the job's shards. Blocks: as toldToEnd().
std::string whoWasToldToEnd(WorkerClient& client, const ShardHosts& hosts);

using OnWaiting = std::function<void(const std::string& what, Duration waited)>;

// Returns a client for parameter servers. `on_waiting` is called every few seconds of a wait,
// `on_replaced`, on a thread of its own, for each restarted ps.
std::unique_ptr<WorkerClient> connectToPs(const cluster::TaskOptions& task,
                                          const net::Credentials& credentials,
                                          std::function<void(uint32_t ps_task)> on_replaced,
                                          OnWaiting on_waiting);

// Returns a client with the parameters in this process: a job without parameter servers. Borrows
// `clock` and `pool`; the pool's threads update the parameters while the calling thread exchanges
// gradients.
std::unique_ptr<WorkerClient> holdParameters(const cluster::TaskOptions& task, const Clock& clock,
                                             runtime::ComputePool& pool);

}  // namespace dtf::workerd
