#pragma once

// The barrier of synchronous replicas: decides which gradients make a step, once, for all tasks.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/engine/awaited.h"
#include "common/engine/fifo_queue.h"
#include "common/engine/gradient_accumulator.h"

namespace dtf::engine {

class Variable;

// A client arrives here when its gradient is at all variables. With replicas_to_aggregate gradients
// of the current step, the step is decided: the global step is counted, and all clients that wait
// get the tickets of its gradients, ordered by rank. Each then has every variable take the step,
// which the first of them does (ApplyAccumulated). So no single client is needed for it: the last
// decision is given to every later arrival, too, which completes it if all others have died.
// //
// The global step is the value of a variable. When it is set or dropped, everything here is.
// //
// Owns: the arrivals of the current step, and the last decision.
// Threads: arrive() in the thread of the variable's device; the rest is thread-safe. Callbacks run
// once, in any thread, without a lock.
// Blocks: never.
// Errors: by callback: kOutOfRange after finish(), kUnavailable after reset(), when the rank
// arrives again, and if the local steps fit neither the current step nor the last; kBadConfig if
// its numbers of replicas differ from what the clients before have.
class ReplicaBarrier final : public Awaited {
 public:
  struct Arrival {
    int64_t rank = 0;
    int64_t ticket = 0;
    std::span<const int64_t> local_steps;  // of the gradients, by variable; -1: dropped
    int64_t replicas_to_aggregate = 0;
    int64_t total_num_replicas = 0;
  };
  // The outcome has one element with the outputs of SyncReplicasArrive.
  using Done = FifoQueue::Done;

  static constexpr size_t kWaitsMax = 1 << 16;

  // `process`: the one that holds it.
  ReplicaBarrier(std::string name, Incarnation process);
  ~ReplicaBarrier();  // no arrival may wait
  ReplicaBarrier(const ReplicaBarrier&) = delete;
  ReplicaBarrier& operator=(const ReplicaBarrier&) = delete;

  // Returns a new ticket for a gradient of the rank. An older one of the rank is void.
  GradientAccumulator::Ticket newTicket(int64_t rank);
  // `global_step`: the variable of this barrier.
  Wait arrive(Variable& global_step, const Arrival& arrival, Done done);
  // The gradient stays: it is complete.
  void cancel(Wait wait) override;
  void finish();
  void reset();
  // Returns "step 7 of 'global_step' has 1 of 3 gradients; missing: rank 0, 2"; beyond 8 ranks
  // "and 9 more".
  std::string awaited() const;

 private:
  struct Known {
    int64_t rank = 0;
    int64_t ticket = 0;
  };
  struct Waiting {
    Arrival arrival;  // without its local steps, which are gone
    Done done;
  };
  struct Decision {
    int64_t step = -1;
    std::vector<int64_t> tickets;
  };
  struct Call {
    Done done;
    FifoQueue::Outcome outcome;
  };

  static void make(std::vector<Call> calls);
  // The error of a decision that doesn't fit the client's outputs.
  FifoQueue::Outcome outcomeOf(const Decision& decision, const Arrival& arrival, bool is_in,
                               int64_t global_step) const;
  // Returns the number of gradients that the rank brings to a step.
  static int64_t shareOf(int64_t rank, int64_t wanted, int64_t total);
  void wantSameReplicas(const Arrival& arrival) const DTF_REQUIRES(mutex_);
  // Forgets arrivals of another step than the current one.
  void follow(const Variable& global_step);
  bool isStale(int64_t step, const Arrival& arrival) const DTF_REQUIRES(mutex_);
  FifoQueue::Outcome staleOutcome(int64_t step, const Arrival& arrival) const DTF_REQUIRES(mutex_);
  int64_t arrivedOf(int64_t rank) const DTF_REQUIRES(mutex_);
  static void count(Variable& global_step, int64_t step);
  void decide(int64_t step, std::vector<Call>& calls) DTF_REQUIRES(mutex_);
  void endWaits(int64_t rank, std::vector<Call>& calls) DTF_REQUIRES(mutex_);
  void failAll(const Error& cause, std::vector<Call>& calls) DTF_REQUIRES(mutex_);

  const std::string name_;
  mutable Mutex mutex_;
  int64_t last_ticket_ DTF_GUARDED_BY(mutex_);
  std::map<int64_t, GradientAccumulator::Ticket> tickets_ DTF_GUARDED_BY(mutex_);  // by rank
  int64_t step_ DTF_GUARDED_BY(mutex_) = -1;  // of the arrivals
  int64_t replicas_to_aggregate_ DTF_GUARDED_BY(mutex_) = 0, total_ DTF_GUARDED_BY(mutex_) = 0;
  std::vector<Known> arrived_ DTF_GUARDED_BY(mutex_);
  std::map<Wait, Waiting> waiting_ DTF_GUARDED_BY(mutex_);
  Decision last_ DTF_GUARDED_BY(mutex_);
  Wait last_wait_ DTF_GUARDED_BY(mutex_) = 0;
  bool finished_ DTF_GUARDED_BY(mutex_) = false;
};

}  // namespace dtf::engine
