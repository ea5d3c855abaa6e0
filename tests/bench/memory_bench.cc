// `dtf-bench memory`: the gain of jobs on one host from reading each other's arenas in memory
// instead of sending them through sockets, and their speed beside one process without a ps. By
// dtf-launch, in turns.

#include <fmt/core.h>

#include "tests/bench/benchmarks.h"
#include "tests/bench/whole_job.h"

namespace dtf::bench {

namespace {

struct Cluster {
  uint32_t ps, workers;
  const char* mode;
};
constexpr Cluster kClusters[] = {{1, 1, "async"}, {1, 1, "sync"}, {2, 2, "async"}, {2, 2, "sync"}};

}  // namespace

std::vector<Report> benchMemory(const BenchOptions& options) {
  std::vector<Report> reports;
  for (const Cluster& cluster : kClusters) {
    const bool is_one = cluster.workers == 1;
    std::vector<std::string> columns = {"sockets", "memory", "ratio"};
    if (is_one) columns.insert(columns.end(), {"no ps", "of no ps"});
    Report& report = reports.emplace_back(
        fmt::format("steps/s, {}, {} ps + {} worker{} of one thread (medians)", cluster.mode,
                    cluster.ps, cluster.workers, is_one ? "" : "s"),
        columns);
    const std::string replication = fmt::format("{{mode: {}}}", cluster.mode);
    for (const JobModel& model : jobModels()) {
      if (!std::string(model.name).starts_with(options.only)) continue;
      const uint64_t steps = options.quick ? model.quickSteps() : model.steps;
      const auto measure = [&](uint32_t ps, bool shared_memory) {
        return stepsPerSecond(model, {ps, cluster.workers, replication.c_str(), shared_memory},
                              steps);
      };
      std::vector<double> sockets, memory, ratios, alone, shares;
      for (int turn = 0; turn < options.repetitions; ++turn) {
        sockets.push_back(measure(cluster.ps, false));
        memory.push_back(measure(cluster.ps, true));
        ratios.push_back(memory.back() / sockets.back());
        if (!is_one) continue;
        alone.push_back(measure(0, true));
        shares.push_back(memory.back() / alone.back());
      }
      std::vector<double> row = {median(sockets), median(memory), median(ratios)};
      if (is_one) row.insert(row.end(), {median(alone), median(shares)});
      report.add(model.name, row);
    }
  }
  return reports;
}

}  // namespace dtf::bench
