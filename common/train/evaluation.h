#pragma once

// Evaluates parameters: loss and metrics over a whole data set.

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

// The result of an evaluation. Loss and accuracy are means over all examples.
struct Evaluation {
  double loss = 0;
  std::optional<double> accuracy;  // if the model lists it
  int64_t examples = 0;
  std::vector<MetricValue> metrics = {};  // the other metrics, in the order of the file
  std::optional<ConfusionMatrix> classes = std::nullopt;  // if the evaluator counts them
};

// Returns `ahead`, name, `between` and value of each metric but the accuracy: ", auc 0.9012, r2
// none".
std::string metricsText(const Evaluation& evaluation, std::string_view ahead, char between);

// Returns whether the evaluations of a job count the classes of their examples: it writes
// summaries, and its model has at most kClassesCheckedMax classes (model_data.h).
bool countsClasses(const cluster::TrainSpec& train);

// Owns: a compiled step, and a smaller one if the last batch is not full.
// Borrows: `device`; shares the data set.
// Threads: thread-compatible.
// Blocks: run() computes.
// Errors: the constructor throws kBadConfig if the data do not fit the model, kBadData if a label
// has no unit.
class Evaluator {
 public:
  // `counts_classes`: evaluations have Evaluation::classes; only for a model of classes.
  Evaluator(const model::ModelSpec& model, std::shared_ptr<const data::Dataset> dataset,
            const runtime::KernelTable& kernels, runtime::Device& device,
            bool counts_classes = false);

  // `values`: the variables in the model's order, as from ParameterBinding::values(). The loss may
  // be infinite or NaN.
  Evaluation run(std::span<const float* const> values);

 private:
  void addBatches(ModelStep& step, int64_t first, int64_t last,
                  std::span<const float* const> values, Evaluation& sums);

  const std::shared_ptr<const data::Dataset> dataset_;
  std::vector<const std::byte*> parts_;  // of the current batch
  ModelStep batch_;
  std::optional<ModelStep> tail_;
  BatchJudge judge_;
};

}  // namespace dtf::train
