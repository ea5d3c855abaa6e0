#include "common/train/trained_split.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "common/base/text.h"
#include "common/train/checkpointer.h"

namespace dtf::train {

namespace {

// Returns false if the setting is one of the split and can't be read.
bool take(std::string_view name, std::string_view value, SplitSetting& split) {
  if (name == "data.eval_split.by") split.by = value;
  if (name != "data.eval_split") return true;
  const char* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, split.fraction);
  return read.ec == std::errc{} && read.ptr == end;
}

std::string textOf(const SplitSetting& split, bool says_by) {
  if (split.fraction == 0) return "none";
  std::string text = fmt::format("{}", split.fraction);
  if (says_by) text += " by " + (split.by.empty() ? "hash" : split.by);
  return text;
}

}  // namespace

SplitSetting splitSettingOf(const cluster::DatasetSpec& data) {
  if (!data.split) return {};
  SplitSetting split{data.split->fraction};
  if (data.split->by != cluster::SplitBy::kHash)
    split.by =
        (data.split->by == cluster::SplitBy::kTime ? "time " : "group ") + data.csv.split_column;
  return split;
}

SplitSetting splitSettingOf(std::span<const arena::Setting> settings) {
  SplitSetting split;
  for (const arena::Setting& setting : settings) take(setting.name, setting.value, split);
  return split;
}

std::optional<SplitSetting> trainedSplit(const checkpoint::Manifest& saved) {
  const auto settings = saved.extra.find(kSettingsKey);
  if (settings == saved.extra.end()) return std::nullopt;
  SplitSetting trained;
  for (const std::string& line : split(settings->second, '\n')) {
    const std::string_view text = line;
    const size_t mark = text.find('=');
    if (mark == std::string_view::npos) continue;
    if (!take(text.substr(0, mark), text.substr(mark + 1), trained)) return std::nullopt;
  }
  return trained;
}

std::string trainedExamplesText(const std::optional<SplitSetting>& trained,
                                const SplitSetting& split) {
  if (!trained || split.fraction == 0) return {};
  const bool is_other_way = split.by != trained->by;
  if (!is_other_way && split.fraction <= trained->fraction) return {};
  return fmt::format("some examples that are evaluated were trained: data.eval_split {} -> {}",
                     textOf(*trained, is_other_way), textOf(split, is_other_way));
}

}  // namespace dtf::train
