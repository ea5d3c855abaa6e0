#pragma once

// Networks that people compare frameworks by, their jobs on random examples, and the time of their steps.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/data/dataset.h"
#include "common/runtime/compute_pool.h"
#include "common/runtime/cpu_kernels.h"
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

// Writes `examples` random ones of the network's shape into `folder`, bytes, or where it has no images
// float32, and returns the job that trains on them with one worker.
cluster::JobSpec jobOf(const Network& network, int examples,
                       const testing::TemporaryFolder& folder);

// Of a step: by the clock, and of all threads of this process.
struct StepTime {
  double seconds, cpu_seconds;
};

// The mean over the steps of `train`, by one worker and one parameter server that are function calls to
// each other. Blocks.
StepTime timeSteps(const cluster::TrainSpec& train,
                   const std::shared_ptr<const data::Dataset>& dataset, runtime::ComputePool& pool,
                   const runtime::ConvolutionRule& rule);

}  // namespace dtf::bench
