#pragma once

// A network's step, forwards and backwards, without a parameter server: the time of its kernels.

#include <span>
#include <vector>

#include "common/cluster/spec.h"
#include "common/data/dataset.h"
#include "common/model/model_graph.h"
#include "common/runtime/compiled_step.h"
#include "common/train/model_step.h"
#include "tests/bench/report.h"

namespace dtf::bench {

// Owns: the step, its variables, all 0.01, and its gradients. Borrows: the device, and the data
// set: every step computes its first batch.
class BoundStep {
 public:
  BoundStep(const cluster::TrainSpec& train, const data::Dataset& dataset,
            const train::ComputeDevice& on);
  train::ModelStep& step() { return step_; }

 private:
  const model::ModelGraph model_;
  train::ModelStep step_;
  std::vector<std::vector<float>> values_, gradients_;
};

// Adds a row for each op of the step: the time of its kernels ("us", "kernels", "share").
// `seconds`: of each row of plan.kernels.
void addOps(const runtime::StepPlan& plan, std::span<const double> seconds, Report& by_op);

}  // namespace dtf::bench
