#pragma once

// The exchange of a sync step by itself: a worker that computes nothing.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/replication/step_state.h"
#include "common/wire/ps/rpc_exchange_client.h"

namespace dtf::bench {

// A worker with its connections, ready to step. Each shard has one variable of `elements` float32,
// updated by gradient descent; a step takes one gradient of zeros of every worker.
// Owns: its connections.
// Threads: thread-compatible.
// Blocks: each call, within the deadlines of the job's timeouts.
// Errors: as exchange::ExchangeClient.
class NullStepper {
 public:
  // The hosts of the shards listen already. Worker 0 gives the first values.
  NullStepper(const cluster::JobSpec& job, uint32_t rank, uint64_t elements);

  void step();
  void meetOthers(const std::string& name) { client_.barrier(name); }
  void finish() { client_.leave(); }

 private:
  void initialise(const arena::ParameterLayout& layout);

  wire::RpcExchangeClient client_;
  replication::StepState state_;
};

// Seconds of each of `steps` calls, after one that isn't timed.
std::vector<double> timeSteps(int steps, const std::function<void()>& step);

}  // namespace dtf::bench
