#include "common/train/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/model/metrics.h"
#include "common/model/model_graph.h"
#include "common/train/model_data.h"

namespace dtf::train {

namespace {

// Large enough that the weights are read rarely, small enough that a batch stays in the cache.
constexpr int64_t kEvaluationBatch = 250;

// For labels as the data to evaluate have them: classes may be of another type than those that are
// trained on.
ModelStep evaluationStep(model::ModelSpec model, const data::Dataset& dataset, int64_t batch_size,
                         const runtime::KernelTable& kernels, runtime::Device& device) {
  model.labels_dtype = dataset.labels().spec().dtype;
  return ModelStep(model::buildEvaluationGraph(model, batch_size), kernels, device);
}

template <class T>
void copyFrom(const data::Part& labels, int64_t first, std::span<int64_t> classes) {
  const std::span<const T> all = labels.as<T>().subspan(static_cast<size_t>(first), classes.size());
  std::copy(all.begin(), all.end(), classes.begin());
}

void copyClasses(const data::Part& labels, int64_t first, std::span<int64_t> classes) {
  switch (labels.spec().dtype) {
    case DType::kUInt8:
      return copyFrom<uint8_t>(labels, first, classes);
    case DType::kInt32:
      return copyFrom<int32_t>(labels, first, classes);
    case DType::kInt64:
      return copyFrom<int64_t>(labels, first, classes);
    case DType::kFloat32:
      break;
  }
  DTF_CHECK_MSG(false, labels.spec().name);
}

}  // namespace

std::string metricsText(const Evaluation& evaluation, std::string_view ahead, char between) {
  std::string text;
  for (const MetricValue& metric : evaluation.metrics)
    text += fmt::format("{}{}{}{}", ahead, metric.name, between,
                        metric.value ? fmt::format("{:.4f}", *metric.value) : "none");
  return text;
}

Evaluator::Evaluator(const model::ModelSpec& model, std::shared_ptr<const data::Dataset> dataset,
                     const runtime::KernelTable& kernels, runtime::Device& device)
    : dataset_(checkedDataset(model, std::move(dataset))),
      batch_(evaluationStep(model, *dataset_, std::min(dataset_->size(), kEvaluationBatch), kernels,
                            device)),
      wanted_(model.metrics),
      scale_(scaleOf(model.loss.kind)) {
  const int64_t rest = dataset_->size() % batch_.batchSize();
  if (rest > 0) tail_.emplace(evaluationStep(model, *dataset_, rest, kernels, device));
}

void Evaluator::addBatches(ModelStep& step, int64_t first, int64_t last,
                           std::span<const float* const> values, Evaluation& sums) {
  const int64_t batch = step.batchSize();
  DTF_CHECK(batch > 0 && (last - first) % batch == 0);
  for (uint32_t i = 0; i < values.size(); ++i) step.bindValue(i, values[i]);
  for (int64_t at = first; at < last; at += batch) {
    step.bindExamples(reinterpret_cast<const std::byte*>(dataset_->features().of(at).data()),
                      reinterpret_cast<const std::byte*>(dataset_->labels().of(at).data()));
    step.run();
    const auto weight = static_cast<double>(batch);
    sums.loss += weight * step.loss();
    // So many examples: the step gives their share as a float32.
    if (sums.accuracy) *sums.accuracy += std::round(weight * step.accuracy());
    if (!wanted_.empty()) judge(step, at);
  }
}

// The step has run on the examples from `first` on.
void Evaluator::judge(const ModelStep& step, int64_t first) {
  const auto batch = static_cast<size_t>(step.batchSize());
  Judged judged;
  judged.outputs = step.outputs();
  DTF_CHECK(!judged.outputs.empty() && judged.outputs.size() % batch == 0);
  judged.units = static_cast<int64_t>(judged.outputs.size() / batch);
  const data::Part& labels = dataset_->labels();
  if (data::areClasses(labels.spec())) {
    classes_.resize(batch);
    copyClasses(labels, first, classes_);
    judged.classes = classes_;
  } else {
    judged.targets = labels.as<float>().subspan(static_cast<size_t>(first * judged.units),
                                                judged.outputs.size());
  }
  if (metrics_.empty())
    for (const model::MetricKind kind : wanted_)
      metrics_.push_back(makeMetric(kind, scale_, judged.units));
  for (const std::unique_ptr<Metric>& metric : metrics_) metric->add(judged);
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
  for (size_t i = 0; i < metrics_.size(); ++i)
    sums.metrics.push_back({std::string(model::nameOf(wanted_[i])), metrics_[i]->value()});
  metrics_.clear();
  return sums;
}

}  // namespace dtf::train
