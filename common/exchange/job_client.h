#pragma once

// A worker's part in the life of its job: its start, its barriers, its end.

#include <cstdint>
#include <span>
#include <string_view>

namespace dtf::exchange {

// Threads, blocks, errors: as ExchangeClient (exchange_client.h), which has declared the model to
// the ps.
class JobClient {
 public:
  virtual ~JobClient() = default;

  // Sends the initial values, as the chief: one arena per ps task, of that shard's `elements`. A
  // ps that holds values already (after a restart of the chief) keeps them. `epoch`: of these
  // values, see replication/epoch.h.
  virtual void initialise(std::span<const std::span<const float>> shards, uint64_t epoch) = 0;

  // Blocks until the chief has initialised every ps.
  virtual void waitInitialised() = 0;

  // Waits at the barrier `name` (on ps/0) until all workers of the job have arrived, or until its
  // deadline.
  virtual void barrier(std::string_view name) = 0;

  // Notes whether the caller evaluates, between two steps. Meanwhile workers that wait for its next
  // gradient have no deadline, for timeouts.finish_seconds at most. Returns at once.
  virtual void setEvaluating(bool evaluates) = 0;

  // Reports to every ps that this worker is done. When all workers are, the ps end. Call it last.
  virtual void leave() = 0;
};

}  // namespace dtf::exchange
