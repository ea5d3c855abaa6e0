// `dtf-bench models`: whole training steps (batch, forward, backward, update) of networks that are
// common in comparisons of frameworks. One worker and one parameter server are function calls to
// each other in this process; there is no network. Each step runs on one thread, and with --threads
// N on N as well, in turns; with --timed also with the kernels that `kernels: timed` chooses; where
// the processor has matrix tiles, in bfloat16 too, against the peak of float32. Random data: their
// values do not change the time of a step.
//
// - GF/s are the operations of the products and convolutions by their definition, forwards and for
//   both gradients (the first layer has one), beside the rate of multiply-adds between registers of
//   as many threads at once. Winograd's convolutions take fewer, so they may pass it.
// - The peak of memory is the process's, examples and all, over the rows of a network: with --only,
//   of that network.
// - The CPU time of all threads is the better column where other programs compute, too.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/isa.h"
#include "common/data/open_dataset.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/kernel_choices.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/bound_step.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/networks.h"

namespace dtf::bench {

namespace {

// Resets this process's peak of memory to its present use.
void forgetPeakMemory() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

double peakMemoryMib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return std::nan("");
}

// One network on some threads, with the kernels of the table, or timed.
struct MeasuredRun {
  std::string name;
  runtime::ComputePool* pool;
  runtime::ConvolutionRule rule;
  std::vector<double> seconds, cpu_seconds;
  Precision precision = Precision::kFloat32;
  double peak = 0;  // of its threads together, measured close to the run
};

// Time of each op of the step, medians over `turns`: the kernels run one by one, without the update
// and without a parameter server.
Report opsOf(cluster::TrainSpec train, const data::Dataset& dataset, const MeasuredRun& row,
             int turns) {
  train.precision = row.precision;
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels, {bestIsa(), row.pool}, row.rule);
  runtime::CpuDevice device;
  BoundStep bound(train, dataset, {&device, &kernels, row.precision});
  train::ModelStep& step = bound.step();
  for (int i = 0; i < turns; ++i) step.run();
  std::vector<std::vector<double>> of_kernel(step.plan().kernels.size());
  for (int i = 0; i < turns; ++i) {
    const std::vector<double> seconds = step.profile();
    for (size_t kernel = 0; kernel < seconds.size(); ++kernel)
      of_kernel[kernel].push_back(seconds[kernel]);
  }
  std::vector<double> medians;
  for (const std::vector<double>& seconds : of_kernel) medians.push_back(median(seconds));
  Report by_op(row.name, {"us", "kernels", "share"});
  addOps(step.plan(), medians, by_op);
  return by_op;
}

}  // namespace

std::vector<Report> benchModels(const BenchOptions& options) {
  Report report("training, one thread unless said",
                {"ms a step", "examples/s", "steps/s", "GF/s", "of peak", "CPU ms", "peak MiB"});
  std::vector<Report> by_op;
  runtime::ComputePool one(1), several(options.threads);
  std::vector<Network> all = networks();
  std::erase_if(all, [&](const Network& network) {
    return !std::string(network.name).starts_with(options.only);
  });
  if (all.empty())
    throw Error(ErrorCode::kUsage, "no network's name begins with '" + options.only + "'");
  // Not in tests: it takes seconds, and 200 MB of activations.
  if (options.quick && options.only.empty())
    std::erase_if(all, [](const Network& network) { return network.classes > 100; });
  for (Network& network : all) {
    if (options.quick) network.steps = 2;
    const testing::TemporaryFolder folder;
    const cluster::JobSpec job =
        jobOf(network, network.batch * (network.classes > 100 ? 2 : 32), folder);
    const auto dataset = data::openDataset(job.train->data.train, job.train->data.seed, false);
    train::KernelChoices timed(cluster::KernelRule::kTimed, folder.path() + "/one",
                               train::KernelChoices::Absent::kTime);
    train::KernelChoices timed_several(cluster::KernelRule::kTimed, folder.path() + "/several",
                                       train::KernelChoices::Absent::kTime);
    std::vector<MeasuredRun> rows = {{network.name, &one, runtime::tableRule(), {}, {}}};
    if (options.threads > 1)
      rows.push_back({fmt::format("{}, {} threads", network.name, options.threads),
                      &several,
                      runtime::tableRule(),
                      {}});
    if (options.timed && network.layers.find("conv2d") != std::string::npos) {
      rows.push_back({fmt::format("{}, timed", network.name), &one, timed.rule(), {}, {}});
      if (options.threads > 1)
        rows.push_back({fmt::format("{}, {} threads, timed", network.name, options.threads),
                        &several,
                        timed_several.rule(),
                        {}});
    }
    const size_t in_float32 = rows.size();
    for (size_t i = 0; hasMatrixTiles() && i < in_float32; ++i) {
      MeasuredRun rounded = rows[i];
      rounded.name += ", bfloat16";
      rounded.precision = Precision::kBFloat16;
      rows.push_back(std::move(rounded));
    }
    forgetPeakMemory();
    for (int i = 0; i < options.repetitions; ++i) {
      for (MeasuredRun& row : rows) {
        row.peak = std::max(row.peak, fmaPeak(bestIsa(), *row.pool));
        cluster::TrainSpec train = *job.train;
        train.precision = row.precision;
        const StepTime step = timeSteps(train, dataset, *row.pool, row.rule);
        row.seconds.push_back(step.seconds);
        row.cpu_seconds.push_back(step.cpu_seconds);
        // Measured again, because the host may have lent a core elsewhere for some milliseconds.
        row.peak = std::max(row.peak, fmaPeak(bestIsa(), *row.pool));
      }
    }
    const double memory = peakMemoryMib();
    const double operations = operationsOf(job.train->model, network.batch);
    for (const MeasuredRun& row : rows) {
      const double step = median(row.seconds), rate = operations / step / 1e9;
      report.add(row.name, {step * 1e3, network.batch / step, 1 / step, rate, rate / row.peak,
                            median(row.cpu_seconds) * 1e3, memory});
      if (!options.only.empty()) by_op.push_back(opsOf(*job.train, *dataset, row, network.steps));
    }
  }
  by_op.insert(by_op.begin(), std::move(report));
  return by_op;
}

}  // namespace dtf::bench
