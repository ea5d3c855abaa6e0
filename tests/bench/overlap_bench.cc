// `dtf-bench overlap`: the gain of async training when a worker computes its next batch while a
// gradient travels (replication.overlap). A ps and a worker of one thread each by dtf-launch, with
// it and without, in turns. Over a link of limited speed if this process's network has
// one: see README.md.

#include "tests/bench/benchmarks.h"
#include "tests/bench/whole_job.h"

namespace dtf::bench {

std::vector<Report> benchOverlap(const BenchOptions& options) {
  return {besideEachOther(
      options, "async training, 1 ps + 1 worker of one thread, through sockets (medians)",
      "overlapped", {.shared_memory = false},
      {.replication = "{mode: async, overlap: true}", .shared_memory = false})};
}

}  // namespace dtf::bench
