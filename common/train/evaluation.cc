#include "common/train/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/model/model_graph.h"
#include "common/train/model_data.h"

namespace dtf::train {

namespace {

// Large enough that the weights are read rarely, small enough that a batch stays in the cache.
constexpr int64_t kEvaluationBatch = 250;

// Builds the step for the label type of `dataset`, which may differ from that in training.
ModelStep evaluationStep(model::ModelSpec model, const data::Dataset& dataset, int64_t batch_size,
                         bool counts_classes, const runtime::KernelTable& kernels,
                         runtime::Device& device) {
  model.labels_dtype = dataset.labels().spec().dtype;
  model::ModelGraph graph = model::buildEvaluationGraph(model, batch_size);
  graph.outputs_wanted |= counts_classes;
  return ModelStep(graph, kernels, device);
}

}  // namespace

std::string metricsText(const Evaluation& evaluation, std::string_view ahead, char between) {
  std::string text;
  for (const MetricValue& metric : evaluation.metrics)
    text += fmt::format("{}{}{}{}", ahead, metric.name, between,
                        metric.value ? fmt::format("{:.4f}", *metric.value) : "none");
  return text;
}

bool countsClasses(const cluster::TrainSpec& train) {
  return train.summaries && !train.model.hasTargets() &&
         model::outputOf(train.model).units <= kClassesCheckedMax;
}

Evaluator::Evaluator(const model::ModelSpec& model, std::shared_ptr<const data::Dataset> dataset,
                     const runtime::KernelTable& kernels, runtime::Device& device,
                     bool counts_classes)
    : dataset_(checkedDataset(model, std::move(dataset))),
      parts_(dataset_->parts().size()),
      batch_(evaluationStep(model, *dataset_, std::min(dataset_->size(), kEvaluationBatch),
                            counts_classes, kernels, device)),
      judge_(model, counts_classes) {
  const int64_t rest = dataset_->size() % batch_.batchSize();
  if (rest > 0)
    tail_.emplace(evaluationStep(model, *dataset_, rest, counts_classes, kernels, device));
}

void Evaluator::addBatches(ModelStep& step, int64_t first, int64_t last,
                           std::span<const float* const> values, Evaluation& sums) {
  const int64_t batch = step.batchSize();
  DTF_CHECK(batch > 0 && (last - first) % batch == 0);
  for (uint32_t i = 0; i < values.size(); ++i) step.bindValue(i, values[i]);
  for (int64_t at = first; at < last; at += batch) {
    const auto* const labels = reinterpret_cast<const std::byte*>(dataset_->labels().of(at).data());
    for (size_t part = 0; part < parts_.size(); ++part)
      parts_[part] = reinterpret_cast<const std::byte*>(dataset_->parts()[part].of(at).data());
    step.bindExamples(parts_);
    step.run();
    const auto weight = static_cast<double>(batch);
    sums.loss += weight * step.loss();
    // Rounds to a count of examples: the step returns their share as a float32.
    if (sums.accuracy) *sums.accuracy += std::round(weight * step.accuracy());
    for (size_t i = 0; i < judge_.scalars(); ++i) judge_.addScalar(i, step.scalar(i), batch);
    if (!judge_.asksForNothing())
      judge_.add(step.outputs(), batch, dataset_->labels().spec().dtype, labels);
  }
}

Evaluation Evaluator::run(std::span<const float* const> values) {
  Evaluation sums;
  sums.examples = dataset_->size();
  if (batch_.hasAccuracy()) sums.accuracy = 0;
  const int64_t whole = sums.examples - sums.examples % batch_.batchSize();
  addBatches(batch_, 0, whole, values, sums);
  if (tail_) addBatches(*tail_, whole, sums.examples, values, sums);
  DTF_CHECK(sums.examples > 0);
  const auto examples = static_cast<double>(sums.examples);
  sums.loss /= examples;
  if (sums.accuracy) *sums.accuracy /= examples;
  sums.metrics = judge_.take();
  sums.classes = judge_.takeClasses();
  return sums;
}

}  // namespace dtf::train
