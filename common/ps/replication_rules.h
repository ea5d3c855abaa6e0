#pragma once

// What follows from a job's kind of replication. This is the only place that asks whether training
// is async or sync: everyone else asks for the rule it needs, by name. Pure functions.
//
// N = replicas_to_aggregate, T = total_num_replicas = the number of workers.
//
//                          async                   sync, N >= T             sync, N < T (backup
//                                                                           workers)
//   batchesPerStep         1                       N/T, and 1 more for      1
//                                                  the first N%T ranks
//   gradientsPerStep       1                       N                        N
//   spareWorkers           0                       0                        T - N
//   batchesOfOrderStep     T                       N                        T
//   cutKind                kHeld                   kAtStep                  kAtStep
//
// Bounded training has the rules of async, and staleness().
//
// Every function but completeReplication() and replicationFault() wants a spec that
// replicationFault() found nothing wrong with.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/batch_plan.h"
#include "common/cluster/spec.h"

namespace dtf::ps {

inline constexpr uint32_t kReplicasToAggregateMax = 1 << 16;

// `spec` with the numbers that the file left out.
cluster::ReplicationSpec completeReplication(cluster::ReplicationSpec spec, uint32_t workers);

// What is wrong with a spec for so many workers; nullopt: nothing.
std::optional<std::string> replicationFault(const cluster::ReplicationSpec& spec, uint32_t workers);

// "async", "sync" or "bounded".
std::string_view replicationName(const cluster::ReplicationSpec& spec);

// Parameters and gradients travel as bfloat16 (narrow_gradient.h), also between tasks of one host:
// the numbers don't depend on where they run.
bool narrowsTransfers(const cluster::ReplicationSpec& spec);

// ---- steps

// True: a step is one thing for all workers and all ps: a worker computes only when every ps has
// given it the parameters of the same step, and an update takes the gradients of a set of workers.
// False: a gradient is applied when it arrives, and each ps counts for itself.
bool sharesSteps(const cluster::ReplicationSpec& spec);

// Bounded: how many steps a worker may be ahead of the slowest when it begins one; nullopt: as many
// as it likes.
std::optional<uint64_t> staleness(const cluster::ReplicationSpec& spec);

// Whether a step can be made without the gradients of some workers; ps/0 decides whose it takes.
bool hasBackupWorkers(const cluster::ReplicationSpec& spec);

// Without how many of its workers a job goes on for good, in place of waiting for their return.
uint32_t spareWorkers(const cluster::ReplicationSpec& spec);

// Whether some batches are answered kQueued: a ps keeps them until their step, beyond their call.
bool queuesBatches(const cluster::ReplicationSpec& spec);

// How many batches `rank` computes from the same parameters.
uint32_t batchesPerStep(const cluster::ReplicationSpec& spec, uint32_t rank);

// How many gradients one global step applies.
uint32_t gradientsPerStep(const cluster::ReplicationSpec& spec);

// How many batches one step of the batch order hands out. In async mode a step of the order is one
// batch of each worker.
uint32_t batchesOfOrderStep(const cluster::ReplicationSpec& spec, uint32_t workers);

// The batches of a job in which every one of so many examples counts once an epoch: in sync mode
// the batches of a step are a group, else each batch is one.
cluster::BatchPlan epochPlan(const cluster::ReplicationSpec& spec, uint32_t workers,
                             uint64_t examples, uint64_t batch_size);

// ---- checkpoints

// How all ps come to capture themselves at one position.
enum class CutKind : uint8_t {
  // A position is a step. The ps are told one that none has passed, and each captures its shard as
  // it gets there: nobody waits.
  kAtStep,
  // A position is how many pushes of each worker were applied. The ps hold new pushes, and apply
  // those that another ps has applied already.
  kHeld,
};
CutKind cutKind(const cluster::ReplicationSpec& spec);

// The batches that each worker has done at `position` of the cuts, for the manifest.
std::vector<uint64_t> batchesDone(const cluster::ReplicationSpec& spec, uint32_t workers,
                                  const std::vector<uint64_t>& position, uint64_t global_step);

// The position where a job of `workers` goes on from a checkpoint of `global_step`, whose workers
// had done `batches_done`. With another number of workers than then, each of them takes an even
// part of what was done, so that the batch order goes on about there.
std::vector<uint64_t> restoredPosition(const cluster::ReplicationSpec& spec, uint32_t workers,
                                       const std::vector<uint64_t>& batches_done,
                                       uint64_t global_step);

}  // namespace dtf::ps
