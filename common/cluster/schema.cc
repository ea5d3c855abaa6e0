#include "common/cluster/schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/cluster/optimizer_settings.h"

namespace dtf::cluster {

bool Key::inRange(double value) const {
  const bool low = number.min_open ? value > number.min : value >= number.min;
  const bool high = number.max_open ? value < number.max : value <= number.max;
  return low && high;
}

std::string Key::rangeText() const {
  DTF_CHECK(whole_min < whole_max || number.min < number.max);
  if (type != ValueType::kNumber && type != ValueType::kNumberOrMap)
    return fmt::format("from {} to {}", whole_min, whole_max);
  return fmt::format("{} {} and {} {}", number.min_open ? "more than" : "at least", number.min,
                     number.max_open ? "less than" : "at most", number.max);
}

const Key* Table::find(std::string_view name) const {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.name == name; });
  if (found != keys.end()) return &*found;
  return also == nullptr ? nullptr : also->find(name);
}

const Key& Table::at(std::string_view name) const {
  const Key* key = find(name);
  DTF_CHECK_MSG(key != nullptr, fmt::format("no key '{}' in table '{}'", name, path));
  return *key;
}

std::vector<std::string_view> Table::names() const {
  std::vector<std::string_view> names;
  for (const Key& key : keys)
    if (key.available) names.push_back(key.name);
  if (also != nullptr)
    for (const std::string_view name : also->names()) names.push_back(name);
  return names;
}

const Table* tableWith(std::string_view word, const Table* except) {
  if (word == "name" || word == "address") return nullptr;
  for (const Table* table : allTables()) {
    const Key* key = table->find(word);
    if (key != nullptr && key->available && table != except) return table;
  }
  return nullptr;
}

std::string keyPath(const Table& table, std::string_view word) {
  DTF_CHECK(table.find(word) != nullptr);
  // A table for several maps lists their paths.
  const std::string_view path = table.path.substr(0, table.path.find(','));
  return path.empty() ? std::string(word) : fmt::format("{}.{}", path, word);
}

std::string_view keyWithoutSpace(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon + 1 == text.size() || text[colon + 1] == ' ')
    return {};
  const std::string_view key = text.substr(0, colon);
  const auto has = [key](const Table* table) { return table->find(key) != nullptr; };
  return std::any_of(allTables().begin(), allTables().end(), has) ? key : std::string_view();
}

std::string nearestKey(std::string_view word, std::span<const std::string_view> words) {
  constexpr size_t kWordBytesMax = 64;
  return word.size() > kWordBytesMax ? "" : nearestWord(word, words);
}

std::string suggestion(std::string_view word, std::span<const std::string_view> words) {
  const std::string near = nearestKey(word, words);
  if (!near.empty()) return " - did you mean '" + near + "'?";
  return fmt::format(" (one of {})", fmt::join(words, ", "));
}

namespace {

std::string typeText(const Key& key) {
  switch (key.type) {
    case ValueType::kMap:
      return "map";
    case ValueType::kList:
      if (!key.choices.empty()) return "list of " + std::string(key.choices);
      return key.whole_max > 0 ? "list of whole numbers" : "list";
    case ValueType::kText:
      return "text";
    case ValueType::kTextOrMap:
      return "text or map";
    case ValueType::kWhole:
      return "whole number " + key.rangeText();
    case ValueType::kNumber:
      return "number " + key.rangeText();
    case ValueType::kNumberOrMap:
      return "number " + key.rangeText() + ", or map";
    case ValueType::kBool:
      return "true or false";
    case ValueType::kChoice:
      return std::string(key.choices);
  }
  return "";
}

// Of a setting; other keys have it in their help.
std::string defaultText(const Key& key) {
  if (key.required || !isSetting(key)) return "";
  OptimizerSpec spec;
  if (key.default_value) setSetting(spec, key, *key.default_value);
  return "; default " + (fits(key, settingValue(spec, key)) ? settingText(spec, key) : "none");
}

}  // namespace

std::string keyReference() {
  std::string out;
  for (const Table* table : allTables()) {
    out += table->path.empty() ? "CLUSTER.yaml; the keys of train: are those of TRAIN.yaml\n"
                               : fmt::format("\n{}\n", table->path);
    for (const Key& key : table->keys) {
      if (!key.available) continue;
      out +=
          fmt::format("  {:<25} {}{}\n", key.name, typeText(key), key.required ? ", required" : "");
      out += fmt::format("  {:<26}  {}{}\n", "", key.help, defaultText(key));
    }
    if (table->also != nullptr) out += fmt::format("  and those of {}\n", table->also->path);
  }
  return out;
}

}  // namespace dtf::cluster
