#include "common/model/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "common/base/check.h"
#include "common/model/former_names.h"
#include "common/model/loss.h"

namespace dtf::model {

namespace {

// After kTopK, in the order of MetricKind.
constexpr std::array<std::string_view, 7> kNames = {"auc",
                                                    "precision",
                                                    "recall",
                                                    "mean_absolute_error",
                                                    "mean_squared_error",
                                                    "root_mean_squared_error",
                                                    "r2_score"};
constexpr std::string_view kTop = "sparse_top_", kTopEnd = "_categorical_accuracy";
constexpr std::string_view kFormerTop = "top_";
constexpr std::string_view kDefaultK = "k";  // of which Keras's default is 5
constexpr int64_t kTopMax = 1'000'000;

// Whether outputs approximate the targets themselves, not their logits.
bool givesTargets(Loss loss) {
  return loss == Loss::kMse || loss == Loss::kMae || loss == Loss::kHuber;
}

std::string todaysName(const MetricSpec& metric) {
  DTF_CHECK(metric.k > 0);
  if (metric.kind == MetricKind::kTopK) return fmt::format("{}{}{}", kTop, metric.k, kTopEnd);
  return std::string(kNames.at(static_cast<size_t>(metric.kind) - 1));
}

// Returns the digits in a name of kTopK; empty for another kind.
std::string_view digitsOf(std::string_view name) {
  if (name.starts_with(kFormerTop)) return name.substr(kFormerTop.size());
  if (!name.starts_with(kTop) || !name.ends_with(kTopEnd)) return {};
  const size_t around = kTop.size() + kTopEnd.size();
  return name.size() > around ? name.substr(kTop.size(), name.size() - around) : "";
}

std::optional<MetricSpec> withWord(MetricSpec metric, std::string_view word) {
  metric.word = word;
  return metric;
}

}  // namespace

bool isEvaluationKey(std::string_view name) {
  return std::ranges::find(kEvaluationKeys, name) != std::end(kEvaluationKeys);
}

std::string nameOf(const MetricSpec& metric) {
  return metric.word.empty() ? todaysName(metric) : metric.word;
}

std::optional<std::string> renamed(const MetricSpec& metric) {
  const FormerName* const row = formerName(FormerName::Kind::kMetric, metric.word);
  const bool is_old = metric.word.starts_with(kFormerTop) ||
                      (row != nullptr && row->use == FormerName::Use::kRenamed);
  return is_old ? std::optional(todaysName(metric)) : std::nullopt;
}

std::optional<MetricSpec> metricNamed(std::string_view name) {
  const FormerName* const row = formerName(FormerName::Kind::kMetric, name);
  const auto found = std::find(kNames.begin(), kNames.end(), row != nullptr ? row->now : name);
  if (found != kNames.end())
    return withWord(MetricSpec(static_cast<MetricKind>(found - kNames.begin() + 1)), name);
  const std::string_view digits = digitsOf(name);
  if (digits.empty()) return std::nullopt;
  if (digits == kDefaultK && name.starts_with(kTop))
    return withWord(MetricSpec(MetricKind::kTopK), name);
  int64_t k = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), k);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || k < 1 || k > kTopMax || digits.front() == '0') return std::nullopt;
  return withWord(MetricSpec(MetricKind::kTopK, k), name);
}

std::optional<std::string> metricFault(const MetricSpec& metric, const ModelSpec& model,
                                       int64_t units) {
  DTF_CHECK(units > 0);
  const std::string name = nameOf(metric);
  const bool to_targets = givesTargets(model.loss.kind);
  switch (metric.kind) {
    case MetricKind::kTopK:
      if (model.hasTargets())
        return fmt::format("metric {} counts classes, and the data have targets", name);
      if (units <= metric.k)
        return fmt::format("metric {} of {} classes is always 1: it wants more than {}", name,
                           units, metric.k);
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
      if (!to_targets && model.loss.kind != Loss::kTensor)
        return fmt::format(
            "metric {} compares outputs with targets, and the loss {} makes logits of "
            "them: it goes with mean_squared_error, mean_absolute_error and huber",
            name, nameOf(model.loss.kind));
      return std::nullopt;
  }
  DTF_CHECK_MSG(false, name);
}

}  // namespace dtf::model
