#pragma once

// What a shard remembers of the pushes that are in its parameters, so that one that is repeated is
// answered as it was before. It goes with the parameters wherever they go: into a replica, and
// back.

#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace dtf::ps {

// The pushes that one update was made of.
struct UpdateNote {
  struct Push {
    uint32_t rank = 0;
    Incarnation incarnation;  // sync: 0, for a successor computes the same gradient
    uint64_t step = 0;
    uint64_t progress = 0;  // bounded: of the worker, with this push
  };
  std::vector<Push> pushes;  // by rank, ascending
  float loss = 0;            // mean over the gradients
};

// Value type, thread-compatible.
struct PushMemory {
  struct Worker {
    Incarnation incarnation;  // of its last push
    uint64_t steps = 0;       // one more than the last that it has pushed
    uint64_t sets = 0;        // bit k: it was among those of the update before the last k
    float loss = 0;           // of its last push
    uint64_t progress = 0;    // bounded: with its last push
    bool operator==(const Worker&) const = default;
  };
  std::vector<Worker> workers;  // by rank
  float loss = 0;               // of the last update
  bool operator==(const PushMemory&) const = default;

  // One more update is in the parameters.
  void applied(const UpdateNote& note);
};

}  // namespace dtf::ps
