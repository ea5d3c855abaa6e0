// `dtf-bench overlap`: what async training gains when a worker computes its next batch while a gradient travels
// (replication.overlap). A ps and a worker of one thread each by dtf-launch, with it and without, in turns. Over a link of so many
// bits a second where the network of this process has one: see README.md.

#include <fmt/core.h>

#include "tests/bench/benchmarks.h"
#include "tests/bench/whole_job.h"

namespace dtf::bench {

namespace {

struct Job {
  const char* name;
  const char* layers;
  uint64_t steps;
};

// The first is so small that handing an exchange to another thread costs more than it hides.
constexpr Job kJobs[] = {
    {"784-10 b100", "flatten: , dense: {units: 10}", 20000},
    {"784-300-100-10 b100",
     "flatten: , dense: {units: 300, activation: relu}, dense: {units: 100, activation: relu}, "
     "dense: {units: 10}",
     2000},
    {"784-2048-1024-10 b100",
     "flatten: , dense: {units: 2048, activation: relu}, dense: {units: 1024, activation: relu}, "
     "dense: {units: 10}",
     150},
    {"LeNet b100",
     "conv2d: {filters: 32, kernel: 5, padding: same, activation: relu}, max_pool: {size: 2}, "
     "conv2d: {filters: 64, kernel: 5, padding: same, activation: relu}, max_pool: {size: 2}, "
     "flatten: , dense: {units: 1024, activation: relu}, dense: {units: 10}",
     60},
};

std::string clusterText(const Job& job, bool overlap, const std::string& folder, uint64_t steps) {
  return fmt::format(
      "job: bench\nrun_dir: {}/runs\ncluster:\n  ps: [\"localhost:auto\"]\n"
      "  worker: [{{address: \"localhost:auto\", threads: 1}}]\n"
      "train:\n  model:\n    input: {{shape: [28, 28, 1]}}\n    layers: [{}]\n"
      "    loss: softmax_cross_entropy\n"
      "  data: {{train: {{format: digits, count: 10000}}, batch_size: 100, seed: 1}}\n"
      "  optimizer: {{momentum: {{learning_rate: 0.001}}}}\n"
      "  replication: {{mode: async, overlap: {}}}\n  steps: {}\n",
      folder, job.layers, overlap, steps);
}

}  // namespace

std::vector<Report> benchOverlap(const BenchOptions& options) {
  Report report("async training, 1 ps + 1 worker of one thread (medians)",
                {"steps/s", "overlapped", "ratio"});
  for (const Job& job : kJobs) {
    if (!std::string(job.name).starts_with(options.only)) continue;
    std::vector<double> plain, overlapped, ratios;
    for (int turn = 0; turn < options.repetitions; ++turn) {
      for (const bool overlap : {false, true})
        (overlap ? overlapped : plain)
            .push_back(runJob([&](const std::string& folder) {
                         return clusterText(job, overlap, folder, options.quick ? 5 : job.steps);
                       })["steps_per_second"]
                           .get<double>());
      ratios.push_back(overlapped.back() / plain.back());
    }
    report.add(job.name, {median(plain), median(overlapped), median(ratios)});
  }
  return {report};
}

}  // namespace dtf::bench
