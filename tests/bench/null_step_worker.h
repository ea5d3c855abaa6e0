#pragma once

// A worker of the null-step table: it pushes a gradient of zeros and gets the parameters back, and
// moves the same bytes over a raw socket, in turns.

#include <chrono>
#include <cstdint>
#include <vector>

#include "common/base/file.h"
#include "common/cluster/spec.h"

namespace dtf::bench {

struct NullStepWorker {
  cluster::JobSpec job;   // its ps listen already
  uint32_t rank = 0;      // of job.cluster.worker
  uint64_t elements = 0;  // float32, on each ps
  uint16_t raw_port = 0;  // of this worker's own raw server
  int repetitions = 0;
  int steps = 0;  // in each repetition, of either kind; one more of each is not timed
};

// Seconds per step of one repetition.
struct NullStepTimes {
  std::vector<double> dtf, raw;
};

// Runs all repetitions, together with the other workers, and writes the times to `out`.
// Blocks: until then, within the deadlines of the job's timeouts.
// Errors: as exchange::ExchangeClient; kUnavailable when the raw server or the reader of `out` is
// gone.
void runNullStepWorker(const NullStepWorker& worker, const Fd& out);

// The other end: reads the times that the worker wrote.
// Blocks: until it has all, `deadline` at most.
// Errors: kDeadline; kInternal when the worker ended before.
std::vector<NullStepTimes> readNullStepTimes(const NullStepWorker& worker, const Fd& in,
                                             std::chrono::seconds deadline);

}  // namespace dtf::bench
