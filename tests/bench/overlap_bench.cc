// `dtf-bench overlap`: what async training gains when a worker computes its next batch while a
// gradient travels (replication.overlap). A ps and a worker of one thread each by dtf-launch, with
// it and without, in turns. Over a link of so many bits a second where the network of this process
// has one: see README.md.

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
