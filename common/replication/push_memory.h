#pragma once

// A shard's memory of the pushes in its parameters, from which it answers a repeated push as
// before. It goes with the parameters: into a replica, and back.

#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace dtf::replication {

// The pushes that one update was made of.
struct UpdateNote {
  struct Push {
    uint32_t rank = 0;
    Incarnation incarnation;  // sync: 0, for a successor computes the same gradient
    uint64_t step = 0;
    uint64_t progress = 0;  // bounded: the worker's clock after this push
  };
  std::vector<Push> pushes;  // by rank, ascending
  float loss = 0;            // mean over the gradients
};

// Value type, thread-compatible.
struct PushMemory {
  struct Worker {
    Incarnation incarnation;  // of its last push
    uint64_t steps = 0;       // one more than its last pushed step
    uint64_t sets = 0;        // bit k: it was in the set of the update k before the last
    float loss = 0;           // of its last push
    uint64_t progress = 0;    // bounded: its clock after its last push
    bool operator==(const Worker&) const = default;
  };
  std::vector<Worker> workers;  // by rank
  float loss = 0;               // of the last update
  bool operator==(const PushMemory&) const = default;

  // Notes one more update in the parameters.
  void applied(const UpdateNote& note);
};

}  // namespace dtf::replication
