// `dtf-bench towers`: whole training steps (batch, forward, backward, mean, update) of one worker,
// in turns, in this process, beside a parameter server that is a function call:
// - on one device with one thread;
// - on one device whose kernels share their work between two threads;
// - on two devices with a thread and half of the batch each.

#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/cluster_yaml.h"
#include "common/data/open_dataset.h"
#include "common/exchange/local_exchange_client.h"
#include "common/train/pooled_updates.h"
#include "common/train/training_loop.h"
#include "common/train/worker_devices.h"
#include "tests/bench/benchmarks.h"
#include "tests/support/process.h"

namespace dtf::bench {

namespace {

struct TowerNetwork {
  const char* name;
  const char* layers;  // YAML
  int batch;
  int steps;  // a repetition
};

constexpr TowerNetwork kNetworks[] = {
    {"784-300-100-10 b100",
     "[flatten: , dense: {units: 300, activation: relu}, dense: {units: 100, activation: relu}, "
     "dense: {units: 10}]",
     100, 1000},
    {"784-300-100-10 b1000",
     "[flatten: , dense: {units: 300, activation: relu}, dense: {units: 100, activation: relu}, "
     "dense: {units: 10}]",
     1000, 150},
    {"conv 16, 32 b100",
     "[conv2d: {filters: 16, kernel_size: 5, padding: same, activation: relu}, max_pooling2d: "
     "{pool_size: 2}, "
     "conv2d: {filters: 32, kernel_size: 3, padding: same, activation: relu}, max_pooling2d: "
     "{pool_size: 2}, "
     "flatten: , dense: {units: 10}]",
     100, 100}};

cluster::TrainSpec trainOf(const TowerNetwork& network, int steps,
                           const testing::TemporaryFolder& folder) {
  const std::string file = folder.write(
      "job.yaml",
      fmt::format("job: towers\ncluster: {{ps: [\"localhost:1\"], worker: [\"localhost:2\"]}}\n"
                  "train:\n  model:\n    input: {{shape: [28, 28, 1]}}\n    layers: {}\n"
                  "    loss: sparse_categorical_crossentropy\n"
                  "  data: {{train: {{format: digits, count: 4000}}, batch_size: {}}}\n"
                  "  optimizer: {{gradient_descent: {{learning_rate: 0.05}}}}\n"
                  "  replication: {{mode: sync}}\n  steps: {}\n",
                  network.layers, network.batch, steps));
  return cluster::loadCluster(file, {}).train.value();
}

// Seconds of a step.
double secondsPerStep(const cluster::TrainSpec& train,
                      const std::shared_ptr<const data::Dataset>& dataset,
                      train::WorkerDevices& devices) {
  const SystemClock clock;
  train::PooledUpdates updates(devices.betweenSteps());
  exchange::LocalCluster cluster(1, 1, clock, std::chrono::minutes(1), &updates);
  exchange::LocalExchangeClient client(cluster, 0);
  train::TrainingLoop loop(train, {}, dataset, client, devices.kernels(), devices.device(), clock,
                           devices.towers());
  loop.join();
  const train::TrainingResult result = loop.run([](const train::Progress&) {});
  client.leave();
  return result.seconds / static_cast<double>(result.batches);
}

}  // namespace

std::vector<Report> benchTowers(const BenchOptions& options) {
  Report report("training on one device and on two (medians)",
                {"1 thread ms", "2 threads ms", "2 towers ms", "2 threads x", "2 towers x",
                 "towers / threads"});
  const runtime::ConvolutionRule rule = runtime::tableRule();
  train::WorkerDevices one({"cpu:0"}, 1, rule), shared({"cpu:0"}, 2, rule),
      two({"cpu:0", "cpu:1"}, 2, rule);
  for (const TowerNetwork& network : kNetworks) {
    const testing::TemporaryFolder folder;
    const cluster::TrainSpec train = trainOf(network, options.quick ? 2 : network.steps, folder);
    const auto dataset = data::openDataset(train.data.train, train.data.seed, false);
    std::vector<double> of_one, of_shared, of_two;
    for (int i = 0; i < options.repetitions; ++i) {
      of_one.push_back(secondsPerStep(train, dataset, one));
      of_shared.push_back(secondsPerStep(train, dataset, shared));
      of_two.push_back(secondsPerStep(train, dataset, two));
    }
    const double alone = median(of_one), threads = median(of_shared), towers = median(of_two);
    report.add(network.name, {alone * 1e3, threads * 1e3, towers * 1e3, alone / threads,
                              alone / towers, threads / towers});
  }
  return {report};
}

}  // namespace dtf::bench
