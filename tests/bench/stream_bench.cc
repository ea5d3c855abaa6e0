// `dtf-bench stream`: the gain of training when gradients leave while the rest of them is computed
// (stream_gradients). A ps and a worker of one thread each by dtf-launch, with it and without, in
// turns. Over a link of limited speed if this process's network has one: see README.md.

#include "tests/bench/benchmarks.h"
#include "tests/bench/whole_job.h"

namespace dtf::bench {

std::vector<Report> benchStream(const BenchOptions& options) {
  const JobShape streamed{.replication = "{mode: sync}", .shared_memory = false};
  JobShape whole = streamed;
  whole.stream_gradients = false;
  return {besideEachOther(options,
                          "sync training, 1 ps + 1 worker of one thread, through sockets (medians)",
                          "streamed", whole, streamed)};
}

}  // namespace dtf::bench
