#pragma once

// A worker of the collectives table: it hosts a shard of the parameters, as the workers of a job
// without ps do, and exchanges gradients of zeros with the others. In turns with that, the limit:
// the same update by processes that map each other's gradients and do nothing else.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/file.h"
#include "common/cluster/spec.h"

namespace dtf::bench {

// What the processes of the limit map: made before they are forked.
// Owns: the mapping.
// Threads: any; update() is each rank's own.
// Blocks: update(), until all ranks have called it.
class SharedUpdate {
 public:
  SharedUpdate(uint32_t ranks, uint64_t elements);
  ~SharedUpdate();
  SharedUpdate(const SharedUpdate&) = delete;
  SharedUpdate& operator=(const SharedUpdate&) = delete;

  // One step of gradient descent with the mean of all ranks' gradients. Each rank updates its share
  // of the parameters; they are all there when it returns.
  void update(uint32_t rank);
  uint64_t bytes() const { return elements_ * sizeof(float); }
  // Of `rank`.
  float* gradients(uint32_t rank) { return gradients_ + rank * elements_; }
  float* parameters() { return parameters_; }

 private:
  void meet(uint64_t number);

  const uint32_t ranks_;
  const uint64_t elements_;
  const size_t mapped_;
  void* const memory_;
  std::atomic<uint64_t>* const arrived_;  // calls of meet() by all ranks
  float* const parameters_;
  float* const gradients_;
};

struct CollectiveWorker {
  cluster::JobSpec job;  // without ps
  uint32_t rank = 0;
  uint64_t elements = 0;  // float32, of each worker's shard
  int repetitions = 0;
  int steps = 0;  // in each repetition, of each kind; one more of each is not timed
};

// Seconds of a step in one repetition.
struct CollectiveTimes {
  std::vector<double> dtf, limit, copy;  // copy: memcpy of the parameters
};

// Runs all repetitions, together with the other workers, and writes the times to `out`. `listening`
// is the socket of this worker's address.
// Blocks: until then.
// Errors: as exchange::ExchangeClient; kUnavailable when the reader of `out` is gone.
void runCollectiveWorker(const CollectiveWorker& worker, Fd listening, SharedUpdate& limit,
                         const Fd& out);

}  // namespace dtf::bench
