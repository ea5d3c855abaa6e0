#pragma once

// What a worker's job asks of those who hold the parameters, wherever they are.

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/cluster/options.h"
#include "common/net/credentials.h"
#include "common/ps/parameter_client.h"
#include "common/runtime/compute_pool.h"
#include "common/wire/ps_link.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

// Threads: parameters() is the training thread's; the rest is thread-safe.
// Blocks: as ps::ParameterClient and checkpoint::CheckpointClient; fail() for `patience` at most.
class WorkerClient {
 public:
  virtual ~WorkerClient() = default;

  virtual ps::ParameterClient& parameters() = 0;
  // For the chief, once the model is declared. `disk_seconds`: the longest that a shard may take to
  // be written or read. Must not outlive this.
  virtual std::unique_ptr<checkpoint::CheckpointClient> checkpoints(double disk_seconds) = 0;

  // Asks for the end of the job after the steps under way.
  virtual void requestStop(WorkerStatus::Refused refused) = 0;
  // Says to all that the job is saved, and left to go on later.
  virtual void pause() = 0;
  // Those ps that were told to end.
  virtual std::set<uint32_t> toldToEnd() = 0;
  // Says to all why this worker ends.
  virtual void fail(const Error& error, wire::FailureOf failure_of, Duration patience) = 0;
  // Every call fails with `error`, now and later.
  virtual void endWith(const Error& error) = 0;

  // Calls `answer` on the loop of the heartbeats, when that comes to it; at once where there are
  // none.
  virtual void askHeartbeats(std::function<void()> answer) = 0;
};

// "ps/0, ps/1 were told to end": of a job without checkpoints, whose workers don't ask for a stop
// but end at once. Blocks as toldToEnd().
std::string whoWasToldToEnd(WorkerClient& client);

using OnWaiting = std::function<void(const std::string& what, Duration waited)>;

// Over the network. `on_waiting` hears every few seconds what is awaited, `on_replaced` hears, on a
// thread of its own, of each ps that was started again.
std::unique_ptr<WorkerClient> connectToPs(const cluster::TaskOptions& task,
                                          const net::Credentials& credentials,
                                          std::function<void(uint32_t ps_task)> on_replaced,
                                          OnWaiting on_waiting);

// In this process: a job without parameter servers. Borrows `clock`, and `pool`, whose threads
// update the parameters while the thread that calls this exchanges gradients.
std::unique_ptr<WorkerClient> holdParameters(const cluster::TaskOptions& task, const Clock& clock,
                                             runtime::ComputePool& pool);

}  // namespace dtf::workerd
