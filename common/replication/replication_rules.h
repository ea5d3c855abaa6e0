#pragma once

// Rules that follow from a job's kind of replication. Only this file tests whether training is
// async or sync; other code calls the rule it needs by name. Pure functions.
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
// Bounded training follows the rules of async, and has staleness().
//
// completeReplication() and replicationFault() take any spec; the other functions only one without
// a replicationFault().

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/batch_plan.h"
#include "common/cluster/spec.h"

namespace dtf::replication {

inline constexpr uint32_t kReplicasToAggregateMax = 1 << 16;

// Returns `spec` with the numbers that the file left out.
cluster::ReplicationSpec completeReplication(cluster::ReplicationSpec spec, uint32_t workers);

// Returns why the spec is bad for so many workers; nullopt: it is good.
std::optional<std::string> replicationFault(const cluster::ReplicationSpec& spec, uint32_t workers);

// Returns "async", "sync" or "bounded".
std::string_view replicationName(const cluster::ReplicationSpec& spec);

// Whether parameters and gradients are sent in another form than float32 (arena/codecs/), also
// between tasks of one host: the numbers don't depend on where tasks run.
bool recodesTransfers(const cluster::ReplicationSpec& spec);
// Whether that form loses a part of each gradient, which the next one gets.
bool isLossy(const cluster::ReplicationSpec& spec);
// Returns the name of the form: "float32", "bfloat16", "int8", "top_k 0.01".
std::string transferText(const cluster::ReplicationSpec& spec);
// Returns its bytes, of float32's 1.
double transferShare(const cluster::ReplicationSpec& spec);

// ---- steps

// Whether all workers and ps take the same steps. True: a worker computes only when every ps has
// given it the parameters of the same step, and an update takes the gradients of a set of workers.
// False: a gradient is applied when it arrives, and each ps counts its own steps.
bool sharesSteps(const cluster::ReplicationSpec& spec);

// Returns how many steps ahead of the slowest a worker of bounded training may begin one; nullopt:
// any number.
std::optional<uint64_t> staleness(const cluster::ReplicationSpec& spec);

// Whether a step can be made without the gradients of some workers; ps/0 chooses the workers.
bool hasBackupWorkers(const cluster::ReplicationSpec& spec);

// Whether every step waits for the gradients of every worker.
bool awaitsAll(const cluster::ReplicationSpec& spec);

// Returns how many workers a job can lose for good without waiting for their return.
uint32_t spareWorkers(const cluster::ReplicationSpec& spec);

// Whether some batches are answered kQueued: a ps keeps them until their step, after their call.
bool queuesBatches(const cluster::ReplicationSpec& spec);

// Returns how many batches `rank` computes from the same parameters.
uint32_t batchesPerStep(const cluster::ReplicationSpec& spec, uint32_t rank);

// Returns the rank that exchanges the gradient of `rank`: its own, or with sums by host that of the
// lowest on the host.
uint32_t pusherOf(const cluster::ReplicationSpec& spec, uint32_t rank);

// Returns the ranks whose gradients are in what `rank` exchanges, ascending: itself first, or none.
std::vector<uint32_t> pushedBy(const cluster::ReplicationSpec& spec, uint32_t rank);

// Returns "[0, 0, 2, 2]", the pusher of each worker; empty without sums by host.
std::string topologyText(const cluster::ReplicationSpec& spec);

// Returns how many gradients one global step applies.
uint32_t gradientsPerStep(const cluster::ReplicationSpec& spec);

// Returns how many batches one step of the batch order has. In async mode it is one batch of each
// worker.
uint32_t batchesOfOrderStep(const cluster::ReplicationSpec& spec, uint32_t workers);

// Returns the batches of a job that reads every example once an epoch: in sync mode the batches of
// a step form a group, otherwise each batch is a group of its own.
cluster::BatchPlan epochPlan(const cluster::ReplicationSpec& spec, uint32_t workers,
                             uint64_t examples, uint64_t batch_size);

// ---- checkpoints

// How all ps capture their shards at one position.
enum class CutKind : uint8_t {
  // The position is a step that no ps has passed. Each ps captures its shard when it gets there,
  // and holds nothing.
  kAtStep,
  // The position is the number of pushes applied, by worker. The ps hold new pushes, and apply each
  // push that another ps has already applied.
  kHeld,
};
CutKind cutKind(const cluster::ReplicationSpec& spec);

// Returns the batches that each worker has done at `position` of the cuts, for the manifest.
std::vector<uint64_t> batchesDone(const cluster::ReplicationSpec& spec, uint32_t workers,
                                  const std::vector<uint64_t>& position, uint64_t global_step);

// Returns the position from which a job of `workers` continues after a checkpoint of `global_step`.
// `batches_done`: by worker, at the checkpoint. If the number of workers has changed, each takes an
// even part of them, so that the batch order continues about there.
std::vector<uint64_t> restoredPosition(const cluster::ReplicationSpec& spec, uint32_t workers,
                                       const std::vector<uint64_t>& batches_done,
                                       uint64_t global_step);

}  // namespace dtf::replication
