#pragma once

// The barrier of synchronous replicas: decides which gradients make a step, once, for all tasks.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/byte_budget.h"
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
// Owns: the arrivals of the current step, the last decision, and the text of the variables that the
// clients train; all with their share of the budget.
// Threads: arrive() in the thread of the variable's device; the rest is thread-safe. Callbacks run
// once, in any thread, without a lock.
// Blocks: never.
// Errors: by callback: kOutOfRange after finish(), kUnavailable after reset(), when the rank
// arrives again, and if the local steps fit neither the current step nor the last; kBadConfig if
// its numbers of replicas or its variables differ from those before. Thrown: kUnavailable without
// room in the budget, before anything has changed.
class ReplicaBarrier final : public Awaited {
 public:
  struct Arrival {
    int64_t rank = 0;
    int64_t ticket = 0;
    std::span<const int64_t> local_steps;  // of the gradients, by variable; -1: dropped
    int64_t replicas_to_aggregate = 0;
    int64_t total_num_replicas = 0;
    std::string_view variables{};  // lines: the optimizer, and each variable with its shape
  };
  // The outcome has one element with the outputs of SyncReplicasArrive.
  using Done = FifoQueue::Done;

  static constexpr size_t kWaitsMax = 1 << 16;
  static constexpr size_t kPausesMax = 256;

  // `process`: the one that holds it.
  ReplicaBarrier(std::string name, std::shared_ptr<ByteBudget> budget, Incarnation process);
  ~ReplicaBarrier();  // no arrival may wait
  ReplicaBarrier(const ReplicaBarrier&) = delete;
  ReplicaBarrier& operator=(const ReplicaBarrier&) = delete;

  // Returns a new ticket for a gradient of the rank. An older one of the rank is void.
  GradientAccumulator::Ticket newTicket(int64_t rank);
  // `global_step`: the variable of this barrier.
  Wait arrive(Variable& global_step, const Arrival& arrival, Done done);
  // Decides no step until resume(), or until this wait is cancelled; other clients arrive and wait
  // meanwhile. For a reader of all variables. The outcome has one element without outputs.
  Wait pause(Done done);
  // Ends all pauses, also if the global step has no value, which is an error; and decides the step
  // if it has its gradients. In the thread of arrive().
  void resume(Variable& global_step);
  // The gradient stays: it is complete. When the last pause is cancelled, clients whose step would
  // be decided are late instead, as there is no thread here to count the step.
  void cancel(Wait wait) override;
  void finish();
  void reset();
  // Returns "step 7 of 'global_step' has 1 of 3 gradients; missing: rank 0, 2"; beyond 8 ranks
  // "and 9 more".
  std::string awaited() const;

 private:
  using Share = ByteBudget::Share;
  struct Rank {
    GradientAccumulator::Ticket ticket;
    Share share;
  };
  struct Known {
    int64_t rank = 0;
    int64_t ticket = 0;
    Share share{};
  };
  struct Waiting {
    Arrival arrival;  // without its local steps and variables, which are gone
    Done done;
    Share share{};  // of itself and its outcome
  };
  struct Decision {
    int64_t step = -1;
    std::vector<int64_t> tickets{};
    std::vector<Share> shares{};  // of the tickets
  };
  // The numbers and variables of the current step's clients, and of the last decision's.
  struct Clients {
    int64_t replicas_to_aggregate = 0, total = 0;
    std::string variables;
    Share share{};  // of `variables`
  };
  struct Call {
    Done done;
    FifoQueue::Outcome outcome;
  };

  static void make(std::vector<Call> calls);
  // The error of a decision that doesn't fit the client's outputs.
  FifoQueue::Outcome outcomeOf(const Decision& decision, const Arrival& arrival, bool is_in,
                               int64_t global_step, Share share) const;
  Share take(uint64_t bytes) const;
  // Returns the number of gradients that the rank brings to a step.
  static int64_t shareOf(int64_t rank, int64_t wanted, int64_t total);
  void remember(const Arrival& arrival) DTF_REQUIRES(mutex_);
  void wantSameReplicas(const Arrival& arrival) const DTF_REQUIRES(mutex_);
  void wantSameVariables(const Arrival& arrival) const DTF_REQUIRES(mutex_);
  // Forgets arrivals of another step than the current one.
  void follow(const Variable& global_step);
  bool isStale(int64_t step, const Arrival& arrival) const DTF_REQUIRES(mutex_);
  FifoQueue::Outcome staleOutcome(int64_t step, const Arrival& arrival, Share share) const
      DTF_REQUIRES(mutex_);
  int64_t arrivedOf(int64_t rank) const DTF_REQUIRES(mutex_);
  static void count(Variable& global_step, int64_t step);
  void decide(int64_t step, std::vector<Call>& calls) DTF_REQUIRES(mutex_);
  bool isComplete() const DTF_REQUIRES(mutex_);
  void endWaits(int64_t rank, std::vector<Call>& calls) DTF_REQUIRES(mutex_);
  void failAll(const Error& cause, std::vector<Call>& calls) DTF_REQUIRES(mutex_);

  const std::string name_;
  const std::shared_ptr<ByteBudget> budget_;
  mutable Mutex mutex_;
  int64_t last_ticket_ DTF_GUARDED_BY(mutex_);
  std::map<int64_t, Rank> ranks_ DTF_GUARDED_BY(mutex_);
  int64_t step_ DTF_GUARDED_BY(mutex_) = -1;  // of the arrivals
  Clients clients_ DTF_GUARDED_BY(mutex_);
  std::vector<Known> arrived_ DTF_GUARDED_BY(mutex_);
  std::map<Wait, Waiting> waiting_ DTF_GUARDED_BY(mutex_);
  std::map<Wait, Done> pauses_ DTF_GUARDED_BY(mutex_);
  Decision last_ DTF_GUARDED_BY(mutex_);
  Wait last_wait_ DTF_GUARDED_BY(mutex_) = 0;
  bool finished_ DTF_GUARDED_BY(mutex_) = false;
};

}  // namespace dtf::engine
