#pragma once

// The size of a job, as train::checkJob() counts it, and its text for users.

#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/spec.h"

namespace dtf::train {

// The number of copies of the parameters in the memory of all ps together. Value type.
struct PsCopies {
  // The version that is read, the version that is written, and rounded copies for the transfer.
  uint64_t values = 2;
  uint64_t slots = 0;       // of the optimizer
  uint64_t durability = 0;  // in /dev/shm, or on the next ps; with the slots
  uint64_t all() const { return values + slots + durability; }
};
PsCopies psCopies(const cluster::JobSpec& job);  // which has a train section (DTF_CHECK)

// Returns the elements of a worker's copies for the transfer of parameters and gradients, which
// have `elements` together: rounded ones, or a residual beside encoded ones.
uint64_t copiesForTransfer(const cluster::ReplicationSpec& replication, uint64_t elements);

// Memory that a job needs. Value type.
struct JobSize {
  ShardHosts hosts{};  // the tasks that host the shards
  uint64_t parameters = 0;
  std::vector<uint64_t> ps_bytes;  // of the parameters alone, by ps task
  uint64_t kept_bytes = 0;         // activations that a worker keeps for the gradients, at least
  uint64_t worker_bytes = 0;       // parameters and gradients of the largest worker
  uint64_t metric_bytes = 0;       // outputs of an evaluation that the chief keeps for metrics
  uint64_t ps_copies = 0;          // see PsCopies::all()
  uint64_t memory_bytes = 0;       // lower bound for all tasks on this host together
};

// "7850 parameters, 30.7 KiB: 30.6 KiB on ps/0, 40 B on ps/1"
std::string sizeText(const JobSize& size);

}  // namespace dtf::train
