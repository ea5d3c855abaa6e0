// `dtf-bench models`: whole training steps (batch, forward, backward, update) of networks that people
// compare frameworks by, in this process, beside no network: one worker and one parameter server that
// are function calls to each other. On one thread, and with --threads N on N as well, in turns; with
// --timed also with the kernels that `kernels: timed` chooses. Random data: what they are costs a step
// nothing.
//
// GF/s are the operations of the products and convolutions as one writes them down, forwards and for
// both gradients (the first layer has one), beside the rate of multiply-adds between registers.
// Winograd's convolutions take fewer, so they may pass it. The CPU time of all threads says more than
// the other columns where other programs compute, too.

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "common/cluster/cluster_yaml.h"
#include "common/data/open_dataset.h"
#include "common/model/model_table.h"
#include "common/model_files/npy.h"
#include "common/ps/local_parameter_client.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/kernel_choices.h"
#include "common/train/training_loop.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/fma_peak.h"
#include "tests/support/process.h"

namespace dtf::bench {

namespace {

struct Network {
  const char* name;
  std::string layers;  // YAML
  std::vector<int64_t> shape;
  int classes;  // 1: two, of one unit
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

// With the stride in the 3x3 convolution, as PyTorch has it.
std::string bottleneck(int filters, int stride, bool first) {
  const std::string shortcut =
      first ? fmt::format(", shortcut: [{}, batch_norm: ]", convolution(4 * filters, 1, stride))
            : "";
  return fmt::format(
      "residual: {{activation: relu, layers: [{}, batch_norm: , relu: , {}, batch_norm: , relu: , "
      "{}, batch_norm: ]{}}}",
      convolution(filters, 1, 1), convolution(filters, 3, stride), convolution(4 * filters, 1, 1),
      shortcut);
}

std::string resNet50() {
  std::string layers = "[" + convolution(64, 7, 2) +
                       ", batch_norm: , relu: , max_pool: {size: 3, stride: 2, padding: same}";
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < blocks[stage]; ++block)
      layers += ", " + bottleneck(64 << stage, block == 0 && stage > 0 ? 2 : 1, block == 0);
  return layers + ", global_avg_pool: , dense: {units: 1000}]";
}

std::string perceptron(std::initializer_list<int> hidden, const char* activation, int outputs,
                       bool flat) {
  std::string layers = flat ? "[" : "[flatten: , ";
  for (const int units : hidden)
    layers += fmt::format("dense: {{units: {}, activation: {}}}, ", units, activation);
  return layers + fmt::format("dense: {{units: {}}}]", outputs);
}

std::vector<Network> networks() {
  const std::vector<int64_t> digits = {28, 28, 1};
  return {{"softmax b100", perceptron({}, "", 10, false), digits, 10, 100, 4000},
          {"784-300-100-10 b100", perceptron({300, 100}, "relu", 10, false), digits, 10, 100, 800},
          // The network of Baldi et al., 2014, for the data set HIGGS.
          {"28-300x5-1 b100",
           perceptron({300, 300, 300, 300, 300}, "tanh", 1, true),
           {28},
           1,
           100,
           400},
          {"LeNet b128", kLeNet, digits, 10, 128, 20},
          {"ResNet-20 b128", resNet20(), {32, 32, 3}, 10, 128, 6},
          {"ResNet-50 b8", resNet50(), {224, 224, 3}, 1000, 8, 2}};
}

// Random examples of the network's shape: bytes, or where it has no images float32. Returns what
// stands under data.train.
std::string writeExamples(const Network& network, int count,
                          const testing::TemporaryFolder& folder) {
  Random random(1);
  const bool images = network.shape.size() == 3;
  std::vector<int64_t> dims = {count};
  dims.insert(dims.end(), network.shape.begin(), network.shape.end());
  const Shape shape(dims);
  std::string features = model_files::npyHeader(images ? DType::kUInt8 : DType::kFloat32, shape);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const float number = random.uniform(-1, 1);
    if (images)
      features.push_back(static_cast<char>(random.below(256)));
    else
      features.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  std::string labels = model_files::npyHeader(DType::kUInt8, Shape{count});
  const int classes = std::max(2, std::min(network.classes, 256));
  for (int i = 0; i < count; ++i)
    labels.push_back(static_cast<char>(random.below(static_cast<uint64_t>(classes))));
  return fmt::format("format: npy, features: {}, labels: {}{}", folder.write("x.npy", features),
                     folder.write("y.npy", labels), images ? ", features_as: pixels" : "");
}

cluster::JobSpec jobOf(const Network& network, const testing::TemporaryFolder& folder) {
  std::string shape;
  for (const int64_t size : network.shape)
    shape += fmt::format("{}{}", shape.empty() ? "" : ", ", size);
  const std::string data =
      writeExamples(network, network.batch * (network.classes > 100 ? 2 : 32), folder);
  const std::string file = folder.write(
      "job.yaml",
      fmt::format("job: models\nrun_dir: {}/runs\ncluster: {{ps: [\"localhost:1\"], worker: "
                  "[\"localhost:2\"]}}\ntrain:\n  model:\n    input: {{shape: [{}]}}\n    layers: "
                  "{}\n    loss: {}\n  data: {{train: {{{}}}, batch_size: {}}}\n"
                  "  optimizer: {{momentum: {{learning_rate: 0.01, momentum: 0.9}}}}\n"
                  "  replication: {{mode: sync}}\n  steps: {}\n",
                  folder.path(), shape, network.layers,
                  network.classes == 1 ? "sigmoid_cross_entropy" : "softmax_cross_entropy", data,
                  network.batch, network.steps));
  return cluster::loadCluster(file, {});
}

// Of a training step: nobody needs the gradient of the examples.
double operationsOf(const model::ModelSpec& model, int batch) {
  double operations = 0;
  for (const model::LayerRow& layer : model::tableOf(model).layers)
    operations += static_cast<double>(layer.flops) * (operations == 0 ? 2 : 3);
  return operations * batch;
}

struct StepTime {
  double seconds, cpu_seconds;
};

double processSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Of a step.
StepTime timeSteps(const cluster::TrainSpec& train,
                   const std::shared_ptr<const data::Dataset>& dataset, runtime::ComputePool& pool,
                   const runtime::ConvolutionRule& rule) {
  const SystemClock clock;
  ps::LocalCluster cluster(1, 1, clock);
  ps::LocalParameterClient client(cluster, 0);
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels, {bestIsa(), &pool}, rule);
  runtime::CpuDevice device;
  train::TrainingLoop loop(train, {}, dataset, client, kernels, device, clock);
  loop.join();
  const double begin = processSeconds();
  const train::TrainingResult result = loop.run([](const train::Progress&) {});
  const double spent = processSeconds() - begin;
  client.finish();
  const auto batches = static_cast<double>(result.batches);
  return {result.seconds / batches, spent / batches};
}

// One network on some threads, with the kernels of the table, or timed.
struct MeasuredRun {
  std::string name;
  runtime::ComputePool* pool;
  runtime::ConvolutionRule rule;
  std::vector<double> seconds, cpu_seconds;
};

}  // namespace

std::vector<Report> benchModels(const BenchOptions& options) {
  Report report("training (medians, one thread unless said)",
                {"ms a step", "examples/s", "steps/s", "GF/s", "of peak", "CPU ms"});
  runtime::ComputePool one(1), several(options.threads);
  std::vector<Network> all = networks();
  std::erase_if(all, [&](const Network& network) {
    return !std::string(network.name).starts_with(options.only);
  });
  if (all.empty())
    throw Error(ErrorCode::kUsage, "no network's name begins with '" + options.only + "'");
  // Of tests: seconds of work, and 200 MB of activations.
  if (options.quick && options.only.empty())
    std::erase_if(all, [](const Network& network) { return network.classes > 100; });
  for (Network& network : all) {
    if (options.quick) network.steps = 2;
    const testing::TemporaryFolder folder;
    const cluster::JobSpec job = jobOf(network, folder);
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
    double peak = 0;  // of a core, in this very minute
    for (int i = 0; i < options.repetitions; ++i) {
      peak = std::max(peak, fmaPeak(bestIsa()));
      for (MeasuredRun& row : rows) {
        const StepTime step = timeSteps(*job.train, dataset, *row.pool, row.rule);
        row.seconds.push_back(step.seconds);
        row.cpu_seconds.push_back(step.cpu_seconds);
      }
    }
    const double operations = operationsOf(job.train->model, network.batch);
    for (const MeasuredRun& row : rows) {
      const double step = median(row.seconds), rate = operations / step / 1e9;
      report.add(row.name, {step * 1e3, network.batch / step, 1 / step, rate,
                            rate / (peak * row.pool->threads()), median(row.cpu_seconds) * 1e3});
    }
  }
  return {report};
}

}  // namespace dtf::bench
