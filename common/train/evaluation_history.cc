#include "common/train/evaluation_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/model/metrics.h"

namespace dtf::train {

namespace {

using model::MetricKind;

constexpr uint64_t kHistoryBytesMax = uint64_t{64} << 20;
constexpr uint32_t kHistorySchema = 1;
constexpr char kHistoryEnd[] = "\n]}\n";

std::filesystem::path historyFile(const std::filesystem::path& checkpoints) {
  return checkpoints / "evaluations.json";
}

bool isBetter(std::string_view metric, double value, double than) {
  return isHigherBetter(metric) ? value > than : value < than;
}

double lossOf(const PastEvaluation& past) {
  return past.value("loss").value_or(std::numeric_limits<double>::infinity());
}

PastEvaluation fromJson(const Json& entry) {
  PastEvaluation past;
  past.step = entry.uint64At("step");
  if (const Json* const checkpoint = entry.find("checkpoint"))
    past.checkpoint = checkpoint->asUint64();
  for (const auto& [name, value] : entry.objectAt("values").members())
    past.values.emplace_back(name, value.asDouble());
  if (entry.contains("left_out")) past.left_out = entry.uint64At("left_out");
  past.improved = entry.contains("improved") && entry.boolAt("improved");
  return past;
}

Json toJson(const PastEvaluation& past) {
  Json values = Json::object();
  for (const auto& [name, value] : past.values) values[name] = value;
  Json entry = {{"step", past.step}, {"values", std::move(values)}};
  if (past.checkpoint) entry["checkpoint"] = *past.checkpoint;
  if (past.left_out > 0) entry["left_out"] = past.left_out;
  if (past.improved) entry["improved"] = true;
  return entry;
}

std::vector<PastEvaluation> parseHistory(std::string_view text) {
  const Json all = Json::parse(text);
  if (all.uint64At("schema") != kHistorySchema)
    throw Error(ErrorCode::kBadData, "it is of another version of dtf");
  std::vector<PastEvaluation> history;
  for (const Json& entry : all.arrayAt("evaluations")) history.push_back(fromJson(entry));
  return history;
}

// Each evaluation has a line. Returns the text up to the last whole one; empty: there is none.
std::string wholeLines(const std::string& text) {
  const size_t end = text.rfind(",\n");
  return end == std::string::npos ? "" : text.substr(0, end) + kHistoryEnd;
}

// Reads the whole lines of a file whose last one is cut short, as a copy onto a full disk is.
std::vector<PastEvaluation> readTorn(const std::filesystem::path& file, const std::string& text) {
  std::vector<PastEvaluation> history = parseHistory(wholeLines(text));
  log::warning("event=evaluations_cut_short file={} kept={} reason=\"its last line is not whole\"",
               file.string(), history.size());
  return history;
}

// `best`: the last improvement before `past`; null: there is none.
bool improves(const PastEvaluation& past, const PastEvaluation* best,
              const cluster::EarlyStoppingSpec& rule) {
  const std::optional<double> value = past.value(rule.metric);
  if (!value || best == nullptr || past.improved) return value.has_value();
  const double delta = isHigherBetter(rule.metric) ? rule.min_delta : -rule.min_delta;
  return isBetter(rule.metric, *value, *best->value(rule.metric) + delta);
}

// Returns whether patience counts `past`. An evaluation without a loss counts: it was not finite.
bool counts(const PastEvaluation& past, const cluster::EarlyStoppingSpec& rule) {
  return past.value(rule.metric).has_value() || !past.value("loss").has_value();
}

// Returns the oldest evaluation other than `best`.
size_t oldestBut(const PastEvaluation* best, std::span<const PastEvaluation> history) {
  return &history.front() == best ? 1 : 0;
}

// Returns the oldest evaluation other than `best` that `rule` does not need: an improvement is
// needed until the next one, which is then marked.
size_t oldestUnneeded(std::span<PastEvaluation> history, const PastEvaluation* best,
                      const cluster::EarlyStoppingSpec& rule) {
  std::optional<size_t> improvement;
  for (size_t i = 0; i < history.size(); ++i) {
    if (!improves(history[i], improvement ? &history[*improvement] : nullptr, rule)) {
      if (&history[i] != best) return i;
      continue;
    }
    if (improvement && &history[*improvement] != best) {
      history[i].improved = true;
      return *improvement;
    }
    improvement = i;
  }
  return oldestBut(best, history);
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
    if (best == nullptr) {
      best = &past;
      continue;
    }
    const double best_value = *best->value(metric);
    if (isBetter(metric, *value, best_value) ||
        (*value == best_value && lossOf(past) < lossOf(*best)))
      best = &past;
  }
  return best;
}

Improvement improvementOf(std::span<const PastEvaluation> history,
                          const cluster::EarlyStoppingSpec& rule) {
  Improvement result;
  for (const PastEvaluation& past : history) {
    result.since += past.left_out + (counts(past, rule) ? 1 : 0);
    if (improves(past, result.best, rule)) result = {.best = &past, .since = 0};
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

void boundHistory(std::vector<PastEvaluation>& history, std::string_view metric,
                  const cluster::EarlyStoppingSpec* rule) {
  while (history.size() > kEvaluationsMax) {
    const PastEvaluation* const best = bestCheckpoint(history, metric);
    const size_t index =
        rule != nullptr ? oldestUnneeded(history, best, *rule) : oldestBut(best, history);
    const auto oldest = history.begin() + static_cast<ptrdiff_t>(index);
    const bool counted = rule == nullptr || counts(*oldest, *rule);
    const uint64_t removed = oldest->left_out + (counted ? 1 : 0);
    history.erase(oldest)->left_out += removed;
  }
}

std::vector<PastEvaluation> readEvaluations(const std::filesystem::path& checkpoints) {
  const std::filesystem::path file = historyFile(checkpoints);
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown) && !unknown) return {};
  try {
    const std::string text = readFile(file, kHistoryBytesMax);
    const bool torn = !text.ends_with(kHistoryEnd) && !wholeLines(text).empty();
    return torn ? readTorn(file, text) : parseHistory(text);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadData) throw;
    throw Error(ErrorCode::kBadData,
                fmt::format("{}: {}; remove it, and the job forgets its earlier evaluations",
                            file.string(), error.message()));
  }
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
  std::string text = fmt::format(R"({{"schema": {}, "evaluations": [)", kHistorySchema);
  const char* before = "\n";
  for (const PastEvaluation& past : history) {
    text += before + toJson(past).dump();
    before = ",\n";
  }
  atomicReplace(historyFile(checkpoints), text + kHistoryEnd);
}

}  // namespace dtf::train
