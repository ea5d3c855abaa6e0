#pragma once

// Jobs with a weight for each example, which counts the uses of that example.

#include <cmath>
#include <memory>
#include <vector>

#include "common/train/epochs.h"
#include "tests/unit/data/part_of.h"
#include "tests/unit/train/job.h"

namespace dtf::train {

inline constexpr double kCountingRate = 1e-4;

// Example i is 1 at place i; its target is 1.
inline std::shared_ptr<const data::Dataset> countedExamples(size_t count) {
  std::vector<float> features(count * count);
  for (size_t i = 0; i < count; ++i) features[i * count + i] = 1;
  return std::make_shared<const data::Dataset>(
      data::partOf(data::kFeatures, Shape{static_cast<int64_t>(count)}, features),
      data::partOf(data::kLabels, Shape{1}, std::vector<float>(count, 1)));
}

// A regression with weights that begin with 0. Each use of an example adds 2 * rate / batch to its
// weight, apart from concurrent updates.
inline cluster::TrainSpec countingJob(size_t examples, int64_t batch_size, uint64_t epochs) {
  cluster::TrainSpec train;
  train.model.input_shape = {static_cast<int64_t>(examples)};
  train.model.input_dtype = train.model.labels_dtype = DType::kFloat32;
  train.model.loss.kind = model::Loss::kMse;
  train.model.layers = {
      model::dense("w", 1, model::Activation::kNone, 0, "kernel_initializer: zeros\n")};
  train.data.batch_size = batch_size;
  train.optimizer.learning_rate = kCountingRate;
  train.epochs = epochs;
  return train;
}

// Returns how often each example was trained on; the largest step of the job has `step` examples.
inline std::vector<double> usesOf(const JobResult& job, size_t examples, double step) {
  std::vector<double> uses;
  constexpr size_t kWeightsAt = 16;  // behind the bias
  for (size_t i = 0; i < examples; ++i)
    uses.push_back(job.parameters.at(0).at(kWeightsAt + i) / (2 * kCountingRate / step));
  return uses;
}

}  // namespace dtf::train
