#pragma once

// How good the parameters are: loss and metrics over a whole data set.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/spec.h"
#include "common/data/dataset.h"
#include "common/runtime/device.h"
#include "common/train/batch_judge.h"
#include "common/train/model_step.h"

namespace dtf::train {

// Of all examples; loss and accuracy are means over them.
struct Evaluation {
  double loss = 0;
  std::optional<double> accuracy;  // where the model asks for it
  int64_t examples = 0;
  std::vector<MetricValue> metrics = {};  // the others that it asks for, in the order of the file
};

// Of each metric but the accuracy `ahead`, its name, `between` and its value: ", auc 0.9012, r2
// none".
std::string metricsText(const Evaluation& evaluation, std::string_view ahead, char between);

// Owns: a compiled step, and one for the examples that don't fill a last batch.
// Borrows: `device`; shares the data set.
// Threads: thread-compatible.
// Blocks: computes.
// Errors: the constructor throws kBadConfig when the data doesn't fit the model, kBadData for a
// label without a unit.
class Evaluator {
 public:
  Evaluator(const model::ModelSpec& model, std::shared_ptr<const data::Dataset> dataset,
            const runtime::KernelTable& kernels, runtime::Device& device);

  // `values`: the variables in the order of the model, as ParameterBinding has them. A loss that is
  // no number is returned as it is.
  Evaluation run(std::span<const float* const> values);

 private:
  void addBatches(ModelStep& step, int64_t first, int64_t last,
                  std::span<const float* const> values, Evaluation& sums);

  const std::shared_ptr<const data::Dataset> dataset_;
  std::vector<const std::byte*> parts_;  // of the batch that is computed
  ModelStep batch_;
  std::optional<ModelStep> tail_;
  BatchJudge judge_;
};

}  // namespace dtf::train
