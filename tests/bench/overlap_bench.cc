// `dtf-bench overlap`: what async training gains when a worker computes its next batch while a gradient travels
// (replication.overlap). A ps and a worker of one thread each by dtf-launch, with it and without, in turns. Over a link of so many
// bits a second where the network of this process has one: see README.md.

#include "tests/bench/benchmarks.h"
#include "tests/bench/whole_job.h"

namespace dtf::bench {

std::vector<Report> benchOverlap(const BenchOptions& options) {
  Report report("async training, 1 ps + 1 worker of one thread, through sockets (medians)",
                {"steps/s", "overlapped", "ratio"});
  for (const JobModel& model : jobModels()) {
    if (!std::string(model.name).starts_with(options.only)) continue;
    const uint64_t steps = options.quick ? model.quickSteps() : model.steps;
    std::vector<double> plain, overlapped, ratios;
    for (int turn = 0; turn < options.repetitions; ++turn) {
      plain.push_back(stepsPerSecond(model, {.shared_memory = false}, steps));
      overlapped.push_back(stepsPerSecond(
          model, {.replication = "{mode: async, overlap: true}", .shared_memory = false}, steps));
      ratios.push_back(overlapped.back() / plain.back());
    }
    report.add(model.name, {median(plain), median(overlapped), median(ratios)});
  }
  return {report};
}

}  // namespace dtf::bench
