// dtf-launch compare: the settings in which runs differ, and their results side by side.

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "common/base/text_table.h"
#include "common/base/wall_time.h"
#include "launcher/commands.h"
#include "launcher/output.h"
#include "launcher/progress.h"
#include "launcher/run_list.h"
#include "launcher/run_settings.h"

namespace dtf::launcher {

namespace {

constexpr size_t kSettingRowsMax = 200;  // of settings, for people; --json prints all
constexpr size_t kCellBytesMax = 40;

using Rows = std::vector<std::vector<std::string>>;

struct Compared {
  std::vector<RunFacts> runs;
  // Nullopt: a run has no settings that can be read.
  std::optional<std::vector<SettingDifference>> settings;
  std::string unread;  // the first job.yaml that can't be read
};

// A run directory that two words name is one run.
Compared compared(const std::vector<std::string>& names) {
  DTF_CHECK(names.size() >= 2);
  Compared all;
  std::set<std::filesystem::path> folders;
  std::vector<RunSettings> settings;
  for (const std::string& name : names) {
    all.runs.push_back(runNamed(name));
    const RunFacts& run = all.runs.back();
    if (!folders.insert(run.folder).second)
      throw Error(ErrorCode::kUsage, fmt::format("compare: '{}' is the run in {}, which is named "
                                                 "twice",
                                                 name, run.folder.string()));
    if (auto found = readSettings(run.folder))
      settings.push_back(std::move(*found));
    else if (all.unread.empty())
      all.unread = (run.folder / "job.yaml").string();
  }
  if (all.unread.empty()) all.settings = differencesOf(settings);
  return all;
}

// "A", "B", ...
std::string letterOf(size_t run) {
  DTF_CHECK(run < 26);
  return std::string(1, static_cast<char>('A' + run));
}

std::vector<std::string> titleOf(const std::string& title, size_t runs) {
  DTF_CHECK(runs >= 2);
  std::vector<std::string> row = {title};
  for (size_t i = 0; i < runs; ++i) row.push_back(letterOf(i));
  return row;
}

std::string cellOf(const std::optional<std::string>& value) {
  if (!value) return "-";
  return value->size() <= kCellBytesMax ? *value : value->substr(0, kCellBytesMax - 3) + "...";
}

void addSettings(const Compared& all, Rows& rows) {
  rows.push_back(titleOf("settings", all.runs.size()));
  for (size_t i = 0; i < std::min(all.settings->size(), kSettingRowsMax); ++i) {
    const SettingDifference& each = (*all.settings)[i];
    std::vector<std::string> row = {"  " + each.key};
    for (const auto& value : each.values) row.push_back(cellOf(value));
    rows.push_back(std::move(row));
  }
  if (all.settings->size() > kSettingRowsMax)
    rows.push_back(
        {fmt::format("  {} more: --json prints all", all.settings->size() - kSettingRowsMax)});
}

// A fact of a run for a row; nullopt: it is not known.
using Fact = std::function<std::optional<std::string>(const RunFacts&)>;

Fact ofNumber(std::optional<double> RunFacts::*field) {
  return [field](const RunFacts& run) -> std::optional<std::string> {
    return run.*field ? std::optional(countText(*(run.*field))) : std::nullopt;
  };
}

Fact ofCount(std::optional<uint64_t> RunFacts::*field) {
  return [field](const RunFacts& run) -> std::optional<std::string> {
    return run.*field ? std::optional(std::to_string(*(run.*field))) : std::nullopt;
  };
}

std::optional<std::string> startOf(const RunFacts& run) {
  return run.started ? std::optional(wallTimeText(*run.started).substr(0, 19)) : std::nullopt;
}

std::optional<std::string> timeOf(const RunFacts& run) {
  return run.seconds ? std::optional(durationText(*run.seconds)) : std::nullopt;
}

std::optional<std::string> digestOf(const RunFacts& run) {
  return run.parameters_digest.empty() ? std::nullopt : std::optional(run.parameters_digest);
}

Fact ofMetric(const std::string& name) {
  return [name](const RunFacts& run) -> std::optional<std::string> {
    for (const auto& [each, value] : run.eval)
      if (each == name) return fmt::format("{:.4f}", value);
    return std::nullopt;
  };
}

// Each metric that one of the runs has, in their order.
std::vector<std::string> metricsOf(const std::vector<RunFacts>& runs) {
  std::vector<std::string> names;
  for (const RunFacts& run : runs)
    for (const auto& [name, value] : run.eval)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

std::vector<std::pair<std::string, Fact>> resultsOf(const std::vector<RunFacts>& runs) {
  std::vector<std::pair<std::string, Fact>> facts = {
      {"state", [](const RunFacts& run) { return std::optional(run.state); }},
      {"started", startOf},
      {"wall time", timeOf},
      {"steps", ofCount(&RunFacts::step)},
      {"steps/s", ofNumber(&RunFacts::steps_per_second)},
      {"examples/s", ofNumber(&RunFacts::examples_per_second)},
      {"loss", ofNumber(&RunFacts::loss)}};
  for (const std::string& name : metricsOf(runs))
    facts.emplace_back(name == "loss" ? "eval loss" : name, ofMetric(name));
  facts.emplace_back("checkpoint", ofCount(&RunFacts::checkpoint));
  facts.emplace_back("parameters", digestOf);
  return facts;
}

// Facts that no run has are left out.
void addResults(const Compared& all, Rows& rows) {
  rows.push_back(titleOf("results", all.runs.size()));
  for (const auto& [name, fact] : resultsOf(all.runs)) {
    std::vector<std::string> row = {"  " + name};
    bool is_known = false;
    for (const RunFacts& run : all.runs) {
      const std::optional<std::string> value = fact(run);
      is_known |= value.has_value();
      row.push_back(value.value_or("-"));
    }
    if (is_known) rows.push_back(std::move(row));
  }
}

std::string textOf(const Compared& all) {
  Rows heads, rows;
  for (size_t i = 0; i < all.runs.size(); ++i)
    heads.push_back({letterOf(i), all.runs[i].id, all.runs[i].job, all.runs[i].folder.string()});
  std::string text = alignedText(heads);
  if (!all.settings)
    text += "settings: not compared, as " + all.unread + " is missing or can't be read\n";
  else if (all.settings->empty())
    text += "settings: the same\n";
  else
    addSettings(all, rows);
  addResults(all, rows);
  return text + alignedText(rows);
}

void printJson(const Compared& all) {
  Json runs = Json::array(), settings = Json::array();
  for (const RunFacts& run : all.runs) runs.push_back(runJson(run));
  for (const SettingDifference& each : all.settings.value_or(std::vector<SettingDifference>())) {
    Json values = Json::array();
    for (const auto& value : each.values) values.push_back(value ? Json(*value) : Json(nullptr));
    settings.push_back(Json{{"key", each.key}, {"values", values}});
  }
  printEvent("compare", {{"runs", runs}, {"settings", all.settings ? settings : Json(nullptr)}});
}

}  // namespace

int compare(const Options& options) {
  const Compared all = compared(options.runs);
  if (options.json)
    printJson(all);
  else
    print(textOf(all));
  return 0;
}

}  // namespace dtf::launcher
