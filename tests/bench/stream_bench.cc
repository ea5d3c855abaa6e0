// `dtf-bench stream`: what training gains when gradients leave while the rest of them is computed (stream_gradients). A ps and a
// worker of one thread each by dtf-launch, with it and without, in turns. Over a link of so many bits a second where the network of this
// process has one: see README.md.

#include "tests/bench/benchmarks.h"
#include "tests/bench/whole_job.h"

namespace dtf::bench {

std::vector<Report> benchStream(const BenchOptions& options) {
  Report report("sync training, 1 ps + 1 worker of one thread, through sockets (medians)",
                {"steps/s", "streamed", "ratio"});
  for (const JobModel& model : jobModels()) {
    if (!std::string(model.name).starts_with(options.only)) continue;
    const uint64_t steps = options.quick ? model.quickSteps() : model.steps;
    std::vector<double> whole, streamed, ratios;
    for (int turn = 0; turn < options.repetitions; ++turn) {
      JobShape shape{.replication = "{mode: sync}", .shared_memory = false};
      shape.stream_gradients = false;
      whole.push_back(stepsPerSecond(model, shape, steps));
      shape.stream_gradients = true;
      streamed.push_back(stepsPerSecond(model, shape, steps));
      ratios.push_back(streamed.back() / whole.back());
    }
    report.add(model.name, {median(whole), median(streamed), median(ratios)});
  }
  return {report};
}

}  // namespace dtf::bench
