#include "tests/bench/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/cluster/cluster_yaml.h"
#include "common/exchange/local_exchange_client.h"
#include "common/model/model_table.h"
#include "common/model_files/npy.h"
#include "common/runtime/cpu_device.h"
#include "common/train/pooled_updates.h"
#include "common/train/training_loop.h"
#include "tests/bench/child.h"

namespace dtf::bench {

namespace {

constexpr const char* kLeNet =
    "[conv2d: {filters: 32, kernel_size: 5, padding: same, activation: relu}, max_pooling2d: "
    "{pool_size: 2}, "
    "conv2d: {filters: 64, kernel_size: 5, padding: same, activation: relu}, max_pooling2d: "
    "{pool_size: 2}, "
    "flatten: , dense: {units: 1024, activation: relu}, dense: {units: 10}]";

std::string convolution(int filters, int kernel, int stride) {
  return fmt::format(
      "conv2d: {{filters: {}, kernel_size: {}, strides: {}, padding: same, use_bias: false}}",
      filters, kernel, stride);
}

// He et al., 2016, with projections where the shape changes.
std::string basicBlock(int filters, int stride) {
  const std::string shortcut = stride == 1 ? ""
                                           : fmt::format(", shortcut: [{}, batch_normalization: ]",
                                                         convolution(filters, 1, stride));
  return fmt::format(
      "residual: {{activation: relu, layers: [{}, batch_normalization: , relu: , {}, "
      "batch_normalization: ]{}}}",
      convolution(filters, 3, stride), convolution(filters, 3, 1), shortcut);
}

std::string resNet20() {
  std::string layers = "[" + convolution(16, 3, 1) + ", batch_normalization: , relu: ";
  for (const int filters : {16, 32, 64})
    for (int block = 0; block < 3; ++block)
      layers += ", " + basicBlock(filters, block == 0 && filters != 16 ? 2 : 1);
  return layers + ", global_average_pooling2d: , dense: {units: 10}]";
}

// The stride is in the 3x3 convolution, as in PyTorch.
std::string bottleneck(int filters, int stride, bool first) {
  const std::string shortcut = first ? fmt::format(", shortcut: [{}, batch_normalization: ]",
                                                   convolution(4 * filters, 1, stride))
                                     : "";
  return fmt::format(
      "residual: {{activation: relu, layers: [{}, batch_normalization: , relu: , {}, "
      "batch_normalization: , relu: , "
      "{}, batch_normalization: ]{}}}",
      convolution(filters, 1, 1), convolution(filters, 3, stride), convolution(4 * filters, 1, 1),
      shortcut);
}

std::string resNet50() {
  std::string layers =
      "[" + convolution(64, 7, 2) +
      ", batch_normalization: , relu: , max_pooling2d: {pool_size: 3, strides: 2, padding: same}";
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < blocks[stage]; ++block)
      layers += ", " + bottleneck(64 << stage, block == 0 && stage > 0 ? 2 : 1, block == 0);
  return layers + ", global_average_pooling2d: , dense: {units: 1000}]";
}

std::string perceptron(std::initializer_list<int> hidden, const char* activation, int outputs,
                       bool flat) {
  std::string layers = flat ? "[" : "[flatten: , ";
  for (const int units : hidden)
    layers += fmt::format("dense: {{units: {}, activation: {}}}, ", units, activation);
  return layers + fmt::format("dense: {{units: {}}}]", outputs);
}

// Writes random examples of the network's shape: bytes for images, else float32. Returns the value
// of data.train.
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

}  // namespace

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
          {"ResNet-50 b8", resNet50(), {224, 224, 3}, 1000, 8, 4}};
}

std::vector<Network> gpuNetworks() {
  std::vector<Network> all = networks();
  std::erase_if(all, [](const Network& network) {
    const std::string_view name = network.name;
    return name != "softmax b100" && name != "LeNet b128";
  });
  for (Network& network : all) network.steps = network.classes * network.batch < 1001 ? 2000 : 300;
  all.push_back({"ResNet-50 b64", resNet50(), {224, 224, 3}, 1000, 64, 22});
  all.push_back({"ResNet-50 b256", resNet50(), {224, 224, 3}, 1000, 256, 12});
  return all;
}

double operationsOf(const model::ModelSpec& model, int batch) {
  double operations = 0;
  for (const model::LayerRow& layer : model::tableOf(model).layers)
    operations += static_cast<double>(layer.flops) * (operations == 0 ? 2 : 3);
  return operations * batch;
}

cluster::JobSpec jobOf(const Network& network, int examples,
                       const testing::TemporaryFolder& folder) {
  std::string shape;
  for (const int64_t size : network.shape)
    shape += fmt::format("{}{}", shape.empty() ? "" : ", ", size);
  const std::string data = writeExamples(network, examples, folder);
  const std::string file = folder.write(
      "job.yaml",
      fmt::format("job: models\nrun_dir: {}/runs\ncluster: {{ps: [\"localhost:1\"], worker: "
                  "[\"localhost:2\"]}}\ntrain:\n  model:\n    input: {{shape: [{}]}}\n    layers: "
                  "{}\n    loss: {}\n  data: {{train: {{{}}}, batch_size: {}}}\n"
                  "  optimizer: {{momentum: {{learning_rate: 0.01, momentum: 0.9}}}}\n"
                  "  replication: {{mode: sync}}\n  steps: {}\n",
                  folder.path(), shape, network.layers,
                  network.classes == 1 ? "binary_crossentropy" : "sparse_categorical_crossentropy",
                  data, network.batch, network.steps));
  return cluster::loadCluster(file, {});
}

StepTime timeSteps(const cluster::TrainSpec& train,
                   const std::shared_ptr<const data::Dataset>& dataset,
                   const runtime::KernelTable& kernels, runtime::Device& device,
                   runtime::ComputePool& pool, bool one_process) {
  const SystemClock clock;
  train::PooledUpdates updates(pool);
  exchange::LocalCluster cluster(1, 1, clock, std::chrono::minutes(1), &updates);
  exchange::LocalExchangeClient client(cluster, 0);
  train::TrainingLoop loop(train, {.one_process = one_process}, dataset, client, kernels, device,
                           clock);
  loop.join();
  // The first step touches its memory for the first time; on a GPU the second is captured.
  const uint64_t untimed = device.usesHostMemory() ? 1 : 2;
  TimePoint begin;
  double begin_cpu = 0;
  uint64_t due = 0;
  loop.run([](const train::Progress&) {},
           [&](const replication::StepState&) {
             if (due++ != untimed) return;
             begin = clock.now();
             begin_cpu = ownCpuSeconds();
           });
  DTF_CHECK(due > untimed);
  {  // the last update may still be on its way
    const runtime::DeviceLock lock(device);
    device.synchronise();
  }
  const auto steps = static_cast<double>(due - untimed);
  const StepTime time = {toSeconds(clock.now() - begin) / steps,
                         (ownCpuSeconds() - begin_cpu) / steps};
  client.leave();
  return time;
}
StepTime timeSteps(const cluster::TrainSpec& train,
                   const std::shared_ptr<const data::Dataset>& dataset, runtime::ComputePool& pool,
                   const runtime::ConvolutionRule& rule) {
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels, {bestIsa(), &pool}, rule);
  runtime::CpuDevice device;
  return timeSteps(train, dataset, kernels, device, pool);
}

}  // namespace dtf::bench
