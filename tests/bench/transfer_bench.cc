// `dtf-bench transfer`: what training gains when parameters and gradients travel as bfloat16 (replication.transfer_dtype). A ps
// and a worker of one thread each by dtf-launch, with it and in float32, in turns. Over a link of so many bits a second where the
// network of this process has one: see README.md.

#include "tests/bench/benchmarks.h"
#include "tests/bench/whole_job.h"

namespace dtf::bench {

std::vector<Report> benchTransfer(const BenchOptions& options) {
  std::vector<Report> reports;
  for (const auto& [mode, narrow_mode] :
       {std::pair{"{mode: sync}", "{mode: sync, transfer_dtype: bfloat16}"},
        std::pair{"{mode: async}", "{mode: async, transfer_dtype: bfloat16}"}}) {
    const JobShape wide{.replication = mode, .shared_memory = false};
    JobShape narrow = wide;
    narrow.replication = narrow_mode;
    reports.push_back(besideEachOther(
        options, std::string(mode) + ", 1 ps + 1 worker of one thread, through sockets (medians)",
        "as bfloat16", wide, narrow));
  }
  return reports;
}

}  // namespace dtf::bench
