#include "common/train/evaluation_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/model/metrics.h"

namespace dtf::train {

namespace {

using model::MetricKind;

constexpr uint64_t kHistoryBytesMax = uint64_t{64} << 20;
constexpr uint32_t kHistorySchema = 1;

std::filesystem::path historyFile(const std::filesystem::path& checkpoints) {
  return checkpoints / "evaluations.json";
}

bool isBetter(std::string_view metric, double value, double than) {
  return isHigherBetter(metric) ? value > than : value < than;
}

PastEvaluation fromJson(const Json& entry) {
  PastEvaluation past;
  past.step = entry.uint64At("step");
  if (const Json* const checkpoint = entry.find("checkpoint"))
    past.checkpoint = checkpoint->asUint64();
  for (const auto& [name, value] : entry.objectAt("values").members())
    past.values.emplace_back(name, value.asDouble());
  return past;
}

Json toJson(const PastEvaluation& past) {
  Json values = Json::object();
  for (const auto& [name, value] : past.values) values[name] = value;
  Json entry = {{"step", past.step}, {"values", std::move(values)}};
  if (past.checkpoint) entry["checkpoint"] = *past.checkpoint;
  return entry;
}

}  // namespace

std::optional<double> PastEvaluation::value(std::string_view metric) const {
  const std::optional<model::MetricSpec> wanted = model::metricNamed(metric);
  for (const auto& [name, value] : values)
    if (name == metric || (wanted && model::metricNamed(name) == wanted)) return value;
  return std::nullopt;
}

PastEvaluation pastEvaluation(uint64_t step, const Evaluation& evaluation) {
  PastEvaluation past;
  past.step = step;
  const auto add = [&past](const std::string& name, const std::optional<double>& value) {
    if (value && std::isfinite(*value)) past.values.emplace_back(name, *value);
  };
  add("loss", evaluation.loss);
  add("accuracy", evaluation.accuracy);
  for (const MetricValue& metric : evaluation.metrics) add(metric.name, metric.value);
  return past;
}

bool isHigherBetter(std::string_view metric) {
  if (metric == "loss") return false;
  const std::optional<model::MetricSpec> spec = model::metricNamed(metric);
  return !spec || (spec->kind != MetricKind::kMae && spec->kind != MetricKind::kMse &&
                   spec->kind != MetricKind::kRmse);
}

const PastEvaluation* bestCheckpoint(std::span<const PastEvaluation> history,
                                     std::string_view metric) {
  const PastEvaluation* best = nullptr;
  for (const PastEvaluation& past : history) {
    const std::optional<double> value = past.value(metric);
    if (!past.checkpoint || !value) continue;
    if (best == nullptr || isBetter(metric, *value, *best->value(metric))) best = &past;
  }
  return best;
}

Improvement improvementOf(std::span<const PastEvaluation> history,
                          const cluster::EarlyStoppingSpec& rule) {
  Improvement result;
  const double delta = isHigherBetter(rule.metric) ? rule.min_delta : -rule.min_delta;
  for (const PastEvaluation& past : history) {
    const std::optional<double> value = past.value(rule.metric);
    if (!value && !past.value("loss").has_value()) ++result.since;  // a loss that is no number
    if (!value) continue;
    const bool improves = result.best == nullptr ||
                          isBetter(rule.metric, *value, *result.best->value(rule.metric) + delta);
    result.since = improves ? 0 : result.since + 1;
    if (improves) result.best = &past;
  }
  return result;
}

std::string earlyStopReason(std::span<const PastEvaluation> history,
                            const cluster::EarlyStoppingSpec& rule) {
  const Improvement improvement = improvementOf(history, rule);
  if (improvement.since < rule.patience) return "";
  if (improvement.best == nullptr)
    return fmt::format("{} evaluations had no {}", improvement.since, rule.metric);
  return fmt::format("{} has not improved on {:.4g} of step {} in {} evaluation{}", rule.metric,
                     *improvement.best->value(rule.metric), improvement.best->step,
                     improvement.since, improvement.since == 1 ? "" : "s");
}

std::vector<PastEvaluation> readEvaluations(const std::filesystem::path& checkpoints) {
  const std::filesystem::path file = historyFile(checkpoints);
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown) && !unknown) return {};
  std::vector<PastEvaluation> history;
  try {
    const Json all = Json::parse(readFile(file, kHistoryBytesMax));
    if (all.uint64At("schema") != kHistorySchema)
      throw Error(ErrorCode::kBadData, "it is of another version of dtf");
    for (const Json& entry : all.arrayAt("evaluations")) history.push_back(fromJson(entry));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadData) throw;
    throw Error(ErrorCode::kBadData,
                fmt::format("{}: {}; remove it, and the job forgets its earlier evaluations",
                            file.string(), error.message()));
  }
  return history;
}

void forgetLostCheckpoints(const std::filesystem::path& checkpoints,
                           std::span<PastEvaluation> history) {
  for (PastEvaluation& past : history) {
    std::error_code unknown;
    if (past.checkpoint &&
        !std::filesystem::exists(checkpoints / fmt::format("step-{}", *past.checkpoint), unknown) &&
        !unknown)
      past.checkpoint.reset();
  }
}

void writeEvaluations(const std::filesystem::path& checkpoints,
                      std::span<const PastEvaluation> history) {
  Json entries = Json::array();
  for (const PastEvaluation& past : history) entries.push_back(toJson(past));
  const Json all = {{"schema", kHistorySchema}, {"evaluations", std::move(entries)}};
  atomicReplace(historyFile(checkpoints), all.dump() + "\n");
}

}  // namespace dtf::train
