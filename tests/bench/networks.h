#pragma once

// Networks that are common in comparisons of frameworks, their jobs on random examples, and the
// time of their steps.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/data/dataset.h"
#include "common/runtime/compute_pool.h"
#include "common/runtime/cpu_kernels.h"
#include "common/runtime/device.h"
#include "tests/support/process.h"

namespace dtf::bench {

struct Network {
  const char* name;
  std::string layers;  // YAML
  std::vector<int64_t> shape;
  int classes;  // 1: two, of one unit
  int batch;
  int steps;  // a repetition
};

std::vector<Network> networks();
std::vector<Network> gpuNetworks();  // these and others, in the batches of a GPU

// Floating-point operations of a training step; the gradient of the examples is not needed.
double operationsOf(const model::ModelSpec& model, int batch);

// Writes `examples` random ones of the network's shape into `folder`, bytes for images, else
// float32, and returns the job that trains on them with one worker.
cluster::JobSpec jobOf(const Network& network, int examples,
                       const testing::TemporaryFolder& folder);

// Time of a step: by the clock, and of all threads of this process.
struct StepTime {
  double seconds, cpu_seconds;
};

// The mean over the steps of `train`, by one worker and one parameter server that are function
// calls to each other. Blocks.
StepTime timeSteps(const cluster::TrainSpec& train,
                   const std::shared_ptr<const data::Dataset>& dataset, runtime::ComputePool& pool,
                   const runtime::ConvolutionRule& rule);

// The same on any device with its kernels; `pool` updates the parameters. `one_process`: without a
// ps, as a worker whose GPU keeps the parameters.
StepTime timeSteps(const cluster::TrainSpec& train,
                   const std::shared_ptr<const data::Dataset>& dataset,
                   const runtime::KernelTable& kernels, runtime::Device& device,
                   runtime::ComputePool& pool, bool one_process = false);

}  // namespace dtf::bench
