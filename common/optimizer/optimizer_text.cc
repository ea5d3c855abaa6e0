#include "common/optimizer/optimizer_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/cluster/optimizer_settings.h"
#include "common/optimizer/optimizer_check.h"

namespace dtf::optimizer {
namespace {

using cluster::LearningRateSchedule;
using cluster::OptimizerSetting;
using cluster::OptimizerSpec;

constexpr std::string_view kSchedule = "schedule";

[[noreturn]] void refuseText(const std::string& why) {
  throw Error(ErrorCode::kBadConfig, "the optimizer: " + why);
}

// Returns the kind with the name, of kinds that are numbered from 1 to `last`.
template <class Kind, class NameOf>
Kind kindOf(std::string_view what, std::string_view name, Kind last, NameOf name_of) {
  std::vector<std::string_view> names;
  for (int kind = 1; kind <= static_cast<int>(last); ++kind) {
    names.push_back(name_of(static_cast<Kind>(kind)));
    if (names.back() == name) return static_cast<Kind>(kind);
  }
  const std::vector<std::string> all(names.begin(), names.end());
  const std::string nearest = nearestWord(name, names);
  refuseText("unknown " + std::string(what) + " '" + std::string(name) + "'" +
             (nearest.empty() ? "; it must be one of " + join(all, ", ")
                              : " - did you mean '" + nearest + "'?"));
}

std::optional<double> numberOf(const yaml::Key& key, std::string_view text) {
  if (key.type == yaml::ValueType::kBool) {
    if (text == "true") return 1;
    if (text == "false") return 0;
    return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && cluster::holds(key, value) ? std::optional(value) : std::nullopt;
}

void set(OptimizerSpec& spec, std::span<const OptimizerSetting> settings, std::string_view name,
         std::string_view text) {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const OptimizerSetting& each) { return each.name == name; });
  if (found == settings.end()) {
    std::vector<std::string_view> names{kSchedule};
    for (const OptimizerSetting& each : settings) names.push_back(each.name);
    const std::vector<std::string> all(names.begin(), names.end());
    const std::string nearest = nearestWord(name, names);
    refuseText(
        std::string(optimizerName(spec.kind)) + " has no setting '" + std::string(name) + "'" +
        (nearest.empty() ? "; it has " + join(all, ", ") : " - did you mean '" + nearest + "'?"));
  }
  const std::optional<double> value = numberOf(*found->key, text);
  // A default may be out of the bounds of the values that a file gives.
  const bool is_default = value && *value == cluster::settingValue(spec, *found->key);
  if (!value || (!is_default && !cluster::fits(*found->key, *value)))
    refuseText(std::string(name) + " is '" + std::string(text) + "', but must be " +
               found->key->typeText());
  cluster::setSetting(spec, *found->key, *value);
}

struct Word {
  std::string_view name, value;
};

Word wordOf(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    refuseText("'" + std::string(text) + "' is no setting; write NAME=VALUE, as learning_rate=0.1");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// adamw has no default for its decay: 0 would make it adam. Nor has a schedule for its steps.
void wantRequired(const OptimizerSpec& spec, std::span<const Word> words,
                  std::span<const OptimizerSetting> settings) {
  for (const yaml::Table* table : {&cluster::schema::optimizer(spec.kind),
                                   &cluster::schema::learningRate(spec.schedule.kind)}) {
    for (const yaml::Key& key : table->keys) {
      const auto is_key = [&](const auto& each) { return each.name == key.name; };
      if (!key.required || std::none_of(settings.begin(), settings.end(), is_key)) continue;
      if (std::none_of(words.begin(), words.end(), is_key))
        refuseText(std::string(optimizerName(spec.kind)) + " needs the setting " +
                   std::string(key.name) + ": " + std::string(key.help));
    }
  }
}

}  // namespace

std::string encodeOptimizer(const OptimizerSpec& spec) {
  std::string text(cluster::optimizerName(spec.kind));
  if (spec.schedule.kind != LearningRateSchedule::Kind::kConstant)
    text += " schedule=" + std::string(cluster::scheduleName(spec.schedule.kind));
  for (const auto& [name, key] : cluster::optimizerSettings(spec))
    text.append(" ").append(name).append("=").append(cluster::settingText(spec, *key));
  return text;
}

OptimizerSpec decodeOptimizer(std::string_view text) {
  if (text.size() > kOptimizerTextMax)
    refuseText("its text has " + std::to_string(text.size()) + " bytes; the most is " +
               std::to_string(kOptimizerTextMax));
  std::vector<std::string> parts = split(text, ' ');
  std::erase(parts, "");
  if (parts.empty())
    refuseText("its text is empty; write NAME SETTING=VALUE ..., as adam beta1=0.9");
  OptimizerSpec spec = cluster::defaultOptimizer(
      kindOf("optimizer", parts[0], OptimizerSpec::Kind::kLamb, cluster::optimizerName));
  std::vector<Word> words;
  for (size_t i = 1; i < parts.size(); ++i) words.push_back(wordOf(parts[i]));
  // The schedule decides which settings there are.
  for (const Word& word : words)
    if (word.name == kSchedule)
      spec.schedule.kind = kindOf("schedule", word.value, LearningRateSchedule::Kind::kCosine,
                                  cluster::scheduleName);
  const std::vector<OptimizerSetting> settings = cluster::optimizerSettings(spec);
  for (const Word& word : words)
    if (word.name != kSchedule) set(spec, settings, word.name, word.value);
  wantRequired(spec, words, settings);
  validateOptimizer(spec);
  return spec;
}

}  // namespace dtf::optimizer
