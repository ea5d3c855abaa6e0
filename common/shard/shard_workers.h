#pragma once

// The calls of a job's workers to one ps about themselves: who takes part, which model it declares,
// barriers, the end of the job.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/arena/model_declaration.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/replication/barrier.h"
#include "common/shard/shard_options.h"
#include "common/shard/shard_values.h"
#include "common/shard/shard_waits.h"
#include "common/shard/straggler_watch.h"
#include "common/shard/worker_table.h"

namespace dtf::shard {

// A worker that joins, is lost, or has finished, leaves the calls that wait for it or of it in that
// state: here, at the barriers, and at the coordinator.
// Owns: the barriers, which model the job has.
// Borrows: everything given to the constructor (must outlive this).
// Threads: loop-thread only.
// Blocks: while a store is made for the declared model.
// Errors: kBadConfig, kPermission, kUnavailable, as of Shard.
class ShardWorkers {
 public:
  ShardWorkers(const ShardOptions& options, const Clock& clock, replication::OutwardCalls& calls,
               WorkerTable& table, ShardValues& values, ShardWaits& waits);

  // Returns true for a new process of the rank. A newer incarnation replaces and fences the one
  // before.
  bool join(uint32_t rank, Incarnation incarnation);

  // The first declaration of a sane model is the job's until the chief declares; then the chief's
  // is. All others must equal it. A worker that declared otherwise before the chief is refused at
  // its next call that waits.
  // Errors: kBadConfig with the worker, the differences and both values.
  void declare(uint32_t rank, Incarnation incarnation, const arena::ModelDeclaration& declaration);
  // Returns why this process can't use parameters yet: it has not joined, or not declared the job's
  // model. Throws when it never can: it was replaced, or declared another model.
  std::optional<Error> notYetDeclared(uint32_t rank, Incarnation incarnation);
  // Throws unless this live process has declared the job's model.
  void checkDeclared(uint32_t rank, Incarnation incarnation);

  // Renews the lease. `evaluates`: the worker is between two steps, and its next may take long.
  void heartbeat(uint32_t rank, Incarnation incarnation, bool evaluates = false);
  void barrier(uint32_t rank, Incarnation incarnation, std::string_view name,
               replication::Arrival arrival, Duration timeout, replication::WaitCallback callback);
  void finish(uint32_t rank, Incarnation incarnation);
  // Ends the job after the steps under way, at any worker's request. Call it on ps/0.
  void requestStop(uint32_t rank, Incarnation incarnation);
  // Throws kPermission when a failure of this live process doesn't end the job: it has finished, or
  // it has sent no gradient while another live worker has. But a chief that has declared the job's
  // model may end the job: it decides whether there are values to go on with.
  void checkMayEndJob(uint32_t rank, Incarnation incarnation);

  // Marks the worker as lost when its process is known to be gone (its connection was reset and its
  // launcher confirms it), without waiting for its lease.
  void markLost(uint32_t rank);
  // Marks workers as lost that have not joined this ps though others train; they may still join.
  void giveUpAwaited();
  // Marks this live process as lost, for the `reason` that it reports.
  void leave(uint32_t rank, Incarnation incarnation, const std::string& reason);

  // On ps/0, in sync training: returns the worker that the others wait for; nullopt: none stands
  // out.
  const std::optional<replication::Straggler>& straggler() const { return stragglers_.straggler(); }

  // ---- calls of the shard

  // Notes the times that a push reports. Precondition: a model is declared.
  void noteTimes(const replication::Contribution& push);

  // Notes the epoch of this ps's values: barriers of earlier ones open.
  void beginEpoch(uint64_t epoch) { barriers_.beginEpoch(epoch); }
  // Notes that there is no model any more: all have to declare it again.
  void forgetDeclared();
  // Checks leases and the barriers' deadlines.
  void tick();
  uint32_t waiting() const { return barriers_.waiting(); }

 private:
  void lose(const replication::Membership::Loss& loss);
  void takeChiefsDeclaration(const arena::ModelDeclaration& declaration);
  Error refusal(uint32_t rank, const arena::ModelDeclaration& theirs,
                const arena::ModelDeclaration& job) const;

  const TaskId host_;  // of the shard
  replication::OutwardCalls& calls_;
  WorkerTable& table_;
  ShardValues& values_;
  ShardWaits& waits_;
  replication::Barriers barriers_;
  StragglerWatch stragglers_;
  uint32_t declarer_ = 0;  // the rank that sent the job's declaration
};

}  // namespace dtf::shard
