#include "common/train/metric.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "common/base/check.h"

namespace dtf::train {

OutputScale scaleOf(model::Loss loss) {
  switch (loss) {
    case model::Loss::kSoftmaxCrossEntropy:
      return OutputScale::kSoftmaxLogits;
    case model::Loss::kSigmoidCrossEntropy:
    case model::Loss::kHinge:
      return OutputScale::kLogits;
    case model::Loss::kMse:
    case model::Loss::kMae:
    case model::Loss::kHuber:
    case model::Loss::kTensor:
      return OutputScale::kTargets;
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(loss)));
}

std::optional<int64_t> predictedClass(OutputScale scale, std::span<const float> outputs) {
  DTF_CHECK(!outputs.empty());
  if (std::ranges::any_of(outputs, [](float each) { return std::isnan(each); }))
    return std::nullopt;
  if (outputs.size() == 1) return outputs[0] > (scale == OutputScale::kTargets ? 0.5F : 0.0F);
  return std::ranges::max_element(outputs) - outputs.begin();
}

std::unique_ptr<Metric> makeMetric(const model::MetricSpec& metric, OutputScale scale,
                                   int64_t units) {
  DTF_CHECK(units > 0);
  switch (metric.kind) {
    case model::MetricKind::kTopK:
      return makeTopK(metric.k);
    case model::MetricKind::kAuc:
      return makeAuc(scale, units);
    case model::MetricKind::kPrecision:
      return makeClassCount(ClassCount::kPrecision, scale, units);
    case model::MetricKind::kRecall:
      return makeClassCount(ClassCount::kRecall, scale, units);
    case model::MetricKind::kMae:
      return makeErrorMetric(ErrorKind::kMae, units);
    case model::MetricKind::kMse:
      return makeErrorMetric(ErrorKind::kMse, units);
    case model::MetricKind::kRmse:
      return makeErrorMetric(ErrorKind::kRmse, units);
    case model::MetricKind::kR2:
      return makeErrorMetric(ErrorKind::kR2, units);
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(metric.kind)));
}

}  // namespace dtf::train
