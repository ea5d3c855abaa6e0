#pragma once

// The settings of a shard's task.

#include <chrono>
#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"

namespace dtf::shard {

struct ShardOptions {
  uint32_t ps_task = 0;
  uint32_t ps_tasks = 1;
  ShardHosts hosts{};  // the tasks that host the shards, for messages
  uint32_t workers = 1;
  Duration lease = std::chrono::seconds(10);  // Duration::max(): workers are never lost by time
  // Longest wait of one push or pull for gradients on this ps. With several ps, rejoin_timeout is
  // added: workers with missing gradients may themselves wait for another ps to return.
  Duration step_timeout = std::chrono::seconds(60);
  // How long a step waits for the return of a lost worker that it needs; 0: it fails at once.
  Duration rejoin_timeout{};
  // Ranks that had finished before this ps was started; no call waits for them.
  std::vector<uint32_t> finished_workers{};
  // How long an evaluation of one worker may suspend the deadlines of other calls.
  Duration evaluation_max = std::chrono::seconds(600);
  uint64_t memory_bytes = 0;  // of this host: a model that needs more is refused; 0: not known

  // Returns the task that hosts this shard.
  TaskId host() const { return hosts.of(ps_task); }
};

}  // namespace dtf::shard
