#include "common/model/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/base/check.h"
#include "common/model/loss.h"

namespace dtf::model {

namespace {

constexpr std::array<std::string_view, 8> kNames = {"top_5", "auc", "precision", "recall",
                                                    "mae",   "mse", "rmse",      "r2"};

// Whether outputs are trained towards the targets themselves, and not towards logits of them.
bool givesTargets(Loss loss) {
  return loss == Loss::kMse || loss == Loss::kMae || loss == Loss::kHuber;
}

}  // namespace

std::string_view nameOf(MetricKind metric) {
  return kNames.at(static_cast<size_t>(metric));
}

bool isMetricName(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::optional<std::string> metricFault(MetricKind metric, const ModelSpec& model, int64_t units) {
  DTF_CHECK(units > 0);
  const std::string_view name = nameOf(metric);
  const bool to_targets = givesTargets(model.loss.kind);
  switch (metric) {
    case MetricKind::kTop5:
      if (model.hasTargets())
        return fmt::format("metric {} counts classes, and the data have targets", name);
      if (units <= 5)
        return fmt::format("metric {} of {} classes is always 1: it wants more than 5", name,
                           units);
      return std::nullopt;
    case MetricKind::kAuc:
    case MetricKind::kPrecision:
    case MetricKind::kRecall:
      if (model.hasTargets() && to_targets)
        return fmt::format(
            "metric {} wants classes, or targets of 0 and 1 that {} is for: the loss "
            "{} has targets of any size",
            name, nameOf(Loss::kSigmoidCrossEntropy), nameOf(model.loss.kind));
      return std::nullopt;
    case MetricKind::kMae:
    case MetricKind::kMse:
    case MetricKind::kRmse:
    case MetricKind::kR2:
      if (!to_targets)
        return fmt::format(
            "metric {} compares outputs with targets, and the loss {} makes logits of "
            "them: it goes with mse, mae and huber",
            name, nameOf(model.loss.kind));
      return std::nullopt;
  }
  DTF_CHECK_MSG(false, std::string(name));
}

}  // namespace dtf::model
