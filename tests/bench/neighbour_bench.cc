// `dtf-bench neighbour`: training on all cores, alone and beside a process that keeps one core
// busy. A fair scheduler gives each thread the same: on n cores a step that has n threads keeps n
// of n + 1 shares. Linux leaves two threads that wait for each other on one core;
// common/runtime/compute_pool.h moves them.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "common/base/cores.h"
#include "common/data/open_dataset.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/child.h"
#include "tests/bench/networks.h"

namespace dtf::bench {

namespace {

constexpr int kExamples = 4096;

[[noreturn]] void spin() {
  for (;;) asm volatile("");
}

}  // namespace

std::vector<Report> benchNeighbour(const BenchOptions& options) {
  const int cores = availableCores();
  Report report(fmt::format("{} threads and a busy process", cores),
                {"ms a step", "ms beside it", "ratio", "goal"});
  for (Network& network : networks()) {
    const std::string name = network.name;
    if (name != "784-300-100-10 b100" && name != "LeNet b128") continue;
    if (options.quick) network.steps = 2;
    const testing::TemporaryFolder folder;
    const cluster::JobSpec job = jobOf(network, kExamples, folder);
    const auto dataset = data::openDataset(job.train->data.train, job.train->data.seed, false);
    const auto train = [&] {
      runtime::ComputePool pool(cores);
      return timeSteps(*job.train, dataset, pool, runtime::tableRule()).seconds * 1e3;
    };
    std::vector<double> alone, beside;
    for (int i = 0; i < options.repetitions; ++i) {
      alone.push_back(train());
      const Child neighbour(spin, Child::Cpu::kAny);
      beside.push_back(train());
    }
    report.add(name, {median(alone), median(beside), median(alone) / median(beside),
                      static_cast<double>(cores) / (cores + 1)});
  }
  return {report};
}

}  // namespace dtf::bench
