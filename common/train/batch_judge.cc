#include "common/train/batch_judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/model/metrics.h"

namespace dtf::train {

namespace {

template <class T>
void copyFrom(const std::byte* labels, std::span<int64_t> classes) {
  const std::span<const T> all(reinterpret_cast<const T*>(labels), classes.size());
  std::copy(all.begin(), all.end(), classes.begin());
}

void copyClasses(DType dtype, const std::byte* labels, std::span<int64_t> classes) {
  switch (dtype) {
    case DType::kUInt8:
      return copyFrom<uint8_t>(labels, classes);
    case DType::kInt32:
      return copyFrom<int32_t>(labels, classes);
    case DType::kInt64:
      return copyFrom<int64_t>(labels, classes);
    case DType::kFloat32:
    case DType::kBFloat16:
      break;
  }
  DTF_CHECK_MSG(false, std::string(dtypeName(dtype)));
}

}  // namespace

BatchJudge::BatchJudge(const model::ModelSpec& model, bool counts_classes)
    : wanted_(model.metrics), scale_(scaleOf(model.loss.kind)) {
  DTF_CHECK(!counts_classes || !model.hasTargets());
  if (counts_classes) confusion_.emplace();
  for (const model::ModelSpec::Scalar& scalar : model.scalars)
    scalars_.push_back({.name = scalar.tensor});
}

void BatchJudge::add(std::span<const float> outputs, int64_t batch, DType dtype,
                     const std::byte* labels) {
  const auto examples = static_cast<size_t>(batch);
  DTF_CHECK(examples > 0 && !outputs.empty() && outputs.size() % examples == 0);
  Judged judged;
  judged.outputs = outputs;
  judged.units = static_cast<int64_t>(outputs.size() / examples);
  if (dtype == DType::kFloat32) {
    judged.targets = {reinterpret_cast<const float*>(labels), outputs.size()};
  } else {
    classes_.resize(examples);
    copyClasses(dtype, labels, classes_);
    judged.classes = classes_;
  }
  if (metrics_.empty())
    for (const model::MetricSpec& metric : wanted_)
      metrics_.push_back(makeMetric(metric, scale_, judged.units));
  for (const std::unique_ptr<Metric>& metric : metrics_) metric->add(judged);
  if (!confusion_) return;
  const auto units = static_cast<size_t>(judged.units);
  for (size_t i = 0; i < examples; ++i)
    confusion_->add(classes_[i], predictedClass(scale_, outputs.subspan(i * units, units)));
}

void BatchJudge::addScalar(size_t index, double value, int64_t batch) {
  DTF_CHECK(index < scalars_.size() && batch > 0);
  scalars_[index].sum += value * static_cast<double>(batch);
  scalars_[index].examples += batch;
}

std::vector<MetricValue> BatchJudge::take() {
  std::vector<MetricValue> values;
  for (size_t i = 0; i < metrics_.size(); ++i)
    values.push_back({model::nameOf(wanted_[i]), metrics_[i]->value()});
  metrics_.clear();
  for (ScalarSum& scalar : scalars_) {
    if (scalar.examples == 0) continue;
    const double mean = scalar.sum / static_cast<double>(scalar.examples);
    values.push_back({scalar.name, std::isfinite(mean) ? std::optional(mean) : std::nullopt});
    scalar = {.name = scalar.name};
  }
  return values;
}

std::optional<ConfusionMatrix> BatchJudge::takeClasses() {
  if (!confusion_) return std::nullopt;
  return std::exchange(*confusion_, ConfusionMatrix());
}

}  // namespace dtf::train
