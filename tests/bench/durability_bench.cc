// `dtf-bench durability`: the cost of being able to lose a ps. The same job by dtf-launch with each
// `durability`, in turns: values are kept, and none are lost.

#include <fmt/core.h>

#include <map>

#include "common/base/json.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/whole_job.h"

namespace dtf::bench {

namespace {

struct Job {
  const char* name;
  const char* layers;
  const char* mode;
  uint64_t steps;
};

// The smallest model, with a step that is little more than a round trip; and one with parameters
// that fill the wire.
constexpr Job kJobs[] = {
    {"784-10, sync", "dense: {units: 10}", "sync", 12000},
    {"784-10, async", "dense: {units: 10}", "async", 30000},
    {"784-1000-10, sync", "dense: {units: 1000, activation: relu}, dense: {units: 10}", "sync",
     600},
    {"784-1000-10, async", "dense: {units: 1000, activation: relu}, dense: {units: 10}", "async",
     1200},
};

constexpr const char* kDurabilities[] = {"checkpoint", "{snapshot: {every_steps: 100}}", "replica"};

std::string clusterText(const Job& job, const std::string& durability, const std::string& folder,
                        uint64_t steps) {
  std::string layers = "flatten: , ";
  layers += job.layers;
  return fmt::format(
      "job: bench\nrun_dir: {}/runs\ndurability: {}\ncluster:\n"
      "  ps: [\"localhost:auto\", \"localhost:auto\"]\n"
      "  worker: [\"localhost:auto\", \"localhost:auto\"]\n"
      "train:\n  model:\n    input: {{shape: [28, 28, 1]}}\n    layers: [{}]\n"
      "    loss: sparse_categorical_crossentropy\n"
      "  data: {{train: {{format: digits, count: 10000}}, batch_size: 100, seed: 1}}\n"
      "  optimizer: {{gradient_descent: {{learning_rate: 0.01}}}}\n"
      "  replication: {{mode: {}}}\n  steps: {}\n  checkpoint: none\n",
      folder, durability, layers, job.mode, steps);
}

}  // namespace

std::vector<Report> benchDurability(const BenchOptions& options) {
  Report report("what durability costs: 2 ps + 2 workers, batch 100 (medians)",
                {"steps/s, checkpoint", "snapshot / that", "replica / that"});
  for (const Job& job : kJobs) {
    std::map<std::string, std::vector<double>> found;  // steps/s, or the ratio of one turn
    for (int turn = 0; turn < options.repetitions; ++turn) {
      double plain = 0;
      for (const std::string durability : kDurabilities) {
        const Json summary = runJob([&](const std::string& folder) {
          return clusterText(job, durability, folder, options.quick ? 20 : job.steps);
        });
        const auto rate = summary["steps_per_second"].asDouble();
        const bool is_plain = plain == 0;
        if (is_plain) plain = rate;
        found[durability].push_back(is_plain ? rate : rate / plain);
      }
    }
    std::vector<double> medians;
    for (const std::string durability : kDurabilities) medians.push_back(median(found[durability]));
    report.add(job.name, medians);
  }
  return {report};
}

}  // namespace dtf::bench
