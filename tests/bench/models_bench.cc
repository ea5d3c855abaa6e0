// `dtf-bench models`: whole training steps (batch, forward, backward, update) of networks that people
// compare frameworks by, in this process, beside no network: one worker and one parameter server that are
// function calls to each other. On one thread, and with --threads N on N as well, in turns. Random data: what they are costs a step nothing.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "common/cluster/cluster_yaml.h"
#include "common/data/open_dataset.h"
#include "common/ps/local_parameter_client.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/training_loop.h"
#include "tests/bench/benchmarks.h"
#include "tests/support/process.h"

namespace dtf::bench {

namespace {

struct Network {
  const char* name;
  std::string layers;  // YAML
  const char* shape;
  int batch;
  int steps;  // a repetition
};

constexpr const char* kLeNet =
    "[conv2d: {filters: 32, kernel: 5, padding: same, activation: relu}, max_pool: {size: 2}, "
    "conv2d: {filters: 64, kernel: 5, padding: same, activation: relu}, max_pool: {size: 2}, "
    "flatten: , dense: {units: 1024, activation: relu}, dense: {units: 10}]";

std::string convolution(int filters, int kernel, int stride) {
  return fmt::format(
      "conv2d: {{filters: {}, kernel: {}, stride: {}, padding: same, use_bias: false}}", filters,
      kernel, stride);
}

// He et al., 2016, with projections where the shape changes.
std::string basicBlock(int filters, int stride) {
  const std::string shortcut =
      stride == 1 ? ""
                  : fmt::format(", shortcut: [{}, batch_norm: ]", convolution(filters, 1, stride));
  return fmt::format(
      "residual: {{activation: relu, layers: [{}, batch_norm: , relu: , {}, batch_norm: ]{}}}",
      convolution(filters, 3, stride), convolution(filters, 3, 1), shortcut);
}

std::string resNet20() {
  std::string layers = "[" + convolution(16, 3, 1) + ", batch_norm: , relu: ";
  for (const int filters : {16, 32, 64})
    for (int block = 0; block < 3; ++block)
      layers += ", " + basicBlock(filters, block == 0 && filters != 16 ? 2 : 1);
  return layers + ", global_avg_pool: , dense: {units: 10}]";
}

std::vector<Network> networks() {
  return {{"softmax b100", "[flatten: , dense: {units: 10}]", "[28, 28, 1]", 100, 4000},
          {"784-300-100-10 b100",
           "[flatten: , dense: {units: 300, activation: relu}, dense: {units: 100, activation: "
           "relu}, dense: {units: 10}]",
           "[28, 28, 1]", 100, 800},
          {"LeNet b128", kLeNet, "[28, 28, 1]", 128, 20},
          {"ResNet-20 b128", resNet20(), "[32, 32, 3]", 128, 6}};
}

// Of CIFAR-10's format: a label and 3072 bytes each.
std::string writeImages(const testing::TemporaryFolder& folder, int count) {
  Random random(1);
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes.push_back(static_cast<char>(random.below(10)));
    for (int k = 0; k < 32 * 32 * 3; ++k) bytes.push_back(static_cast<char>(random.below(256)));
  }
  return folder.write("images.bin", bytes);
}

cluster::JobSpec jobOf(const Network& network, const testing::TemporaryFolder& folder) {
  const bool colours = std::string(network.shape) == "[32, 32, 3]";
  const std::string data =
      colours ? fmt::format("format: cifar10, files: [{}]", writeImages(folder, 1024))
              : "format: digits, count: 4096";
  const std::string file = folder.write(
      "job.yaml",
      fmt::format("job: models\nrun_dir: {}/runs\ncluster: {{ps: [\"localhost:1\"], worker: "
                  "[\"localhost:2\"]}}\ntrain:\n  model:\n    input: {{shape: {}}}\n    layers: "
                  "{}\n    loss: softmax_cross_entropy\n  data: {{train: {{{}}}, batch_size: {}}}\n"
                  "  optimizer: {{momentum: {{learning_rate: 0.01, momentum: 0.9}}}}\n"
                  "  replication: {{mode: sync}}\n  steps: {}\n",
                  folder.path(), network.shape, network.layers, data, network.batch,
                  network.steps));
  return cluster::loadCluster(file, {});
}

// Seconds of a step.
double stepSeconds(const cluster::TrainSpec& train,
                   const std::shared_ptr<const data::Dataset>& dataset,
                   runtime::ComputePool& pool) {
  const SystemClock clock;
  ps::LocalCluster cluster(1, 1, clock);
  ps::LocalParameterClient client(cluster, 0);
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels, {bestIsa(), &pool});
  runtime::CpuDevice device;
  train::TrainingLoop loop(train, {}, dataset, client, kernels, device, clock);
  loop.join();
  const train::TrainingResult result = loop.run([](const train::Progress&) {});
  client.finish();
  return result.seconds / static_cast<double>(result.batches);
}

}  // namespace

std::vector<Report> benchModels(const BenchOptions& options) {
  Report report("training (medians, one thread unless said)",
                {"ms a step", "examples/s", "steps/s"});
  runtime::ComputePool one(1), several(options.threads);
  std::vector<Network> all = networks();
  std::erase_if(all, [&](const Network& network) {
    return !std::string(network.name).starts_with(options.only);
  });
  if (all.empty())
    throw Error(ErrorCode::kUsage, "no network's name begins with '" + options.only + "'");
  for (Network& network : all) {
    if (options.quick) network.steps = 2;
    const testing::TemporaryFolder folder;
    const cluster::JobSpec job = jobOf(network, folder);
    const auto dataset = data::openDataset(job.train->data.train, job.train->data.seed, false);
    std::vector<double> seconds, of_several;
    for (int i = 0; i < options.repetitions; ++i) {
      seconds.push_back(stepSeconds(*job.train, dataset, one));
      if (options.threads > 1) of_several.push_back(stepSeconds(*job.train, dataset, several));
    }
    const auto add = [&](const std::string& name, const std::vector<double>& found) {
      const double step = median(found);
      report.add(name, {step * 1e3, network.batch / step, 1 / step});
    };
    add(network.name, seconds);
    if (options.threads > 1)
      add(fmt::format("{}, {} threads", network.name, options.threads), of_several);
  }
  return {report};
}

}  // namespace dtf::bench
