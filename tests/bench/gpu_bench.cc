// `dtf-bench gpu`: whole training steps of networks on gpu:0 in each precision. Three figures of
// each:
// - the GPU's time in a step (forwards and backwards, between two events on its stream);
// - a whole step of a worker without a ps: its GPU keeps the variables and updates them;
// - a whole step with a parameter server that is function calls in this process: batch to the GPU,
//   gradients from it, an update on all cores, parameters to it.
//
// Random data: their values do not change the time of a step. With --only also a table of the time
// of each op. PyTorch beside it: scripts/gpu-check.sh.

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cores.h"
#include "common/base/error.h"
#include "common/data/open_dataset.h"
#include "common/runtime/computing_device.h"
#include "common/runtime/plugin_device.h"
#include "common/train/model_step.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/bound_step.h"
#include "tests/bench/networks.h"

namespace dtf::bench {

namespace {

struct PrecisionName {
  Precision precision;
  const char* name;
};
constexpr PrecisionName kPrecisions[] = {{Precision::kFloat32, "float32"},
                                         {Precision::kTf32, "tf32"},
                                         {Precision::kBFloat16, "bfloat16"}};

// Median of the GPU's time in each of `steps` steps, with variables and gradients bound once.
double deviceSeconds(const cluster::TrainSpec& train, const data::Dataset& dataset,
                     const train::ComputeDevice& on, int steps, Report* by_op) {
  BoundStep bound(train, dataset, on);
  train::ModelStep& step = bound.step();
  std::vector<double> seconds;
  for (int i = 0; i < steps + 2; ++i) {  // one loads code, one is captured
    step.run();
    if (i >= 2) seconds.push_back(step.deviceSeconds().value_or(std::nan("")));
  }
  if (by_op != nullptr) addOps(step.plan(), step.profile(), *by_op);
  return median(seconds);
}

}  // namespace

std::vector<Report> benchGpu(const BenchOptions& options) {
  const std::string missing = runtime::missingDevice("gpu:0");
  if (!missing.empty()) throw Error(ErrorCode::kUnavailable, missing);
  runtime::ComputePool pool(1), updates(availableCores());
  const std::unique_ptr<runtime::Device> device = runtime::makeDevice("gpu:0");
  const runtime::KernelTable kernels = runtime::kernelsOf("gpu:0", pool, runtime::tableRule());
  std::vector<Report> reports;
  Report report("training on gpu:0", {"GPU ms", "GPU TF/s", "step ms", "examples/s", "with ps ms"});
  for (Network network : gpuNetworks()) {
    if (!std::string(network.name).starts_with(options.only)) continue;
    if (options.quick) network.steps = 4;
    const testing::TemporaryFolder folder;
    cluster::JobSpec job = jobOf(network, network.batch * 2, folder);
    const auto dataset = data::openDataset(job.train->data.train, job.train->data.seed, false);
    const double operations = operationsOf(job.train->model, network.batch);
    for (const auto& [precision, name] : kPrecisions) {
      job.train->precision = precision;
      const train::ComputeDevice on{device.get(), &kernels, precision};
      Report by_op(fmt::format("{}, {}: launched one by one", network.name, name),
                   {"us", "kernels", "share"});
      const bool asked = !options.only.empty();
      const double computed =
          deviceSeconds(*job.train, *dataset, on, network.steps, asked ? &by_op : nullptr);
      if (asked) reports.push_back(std::move(by_op));
      std::vector<double> alone, with_ps;
      for (int i = 0; i < options.repetitions; ++i)
        for (const bool one_process : {true, false})
          (one_process ? alone : with_ps)
              .push_back(
                  timeSteps(*job.train, dataset, kernels, *device, updates, one_process).seconds);
      const double step = median(alone), step_with_ps = median(with_ps);
      report.add(fmt::format("{}, {}", network.name, name),
                 {computed * 1e3, operations / computed / 1e12, step * 1e3, network.batch / step,
                  step_with_ps * 1e3});
    }
  }
  reports.insert(reports.begin(), std::move(report));
  return reports;
}

}  // namespace dtf::bench
