#include "common/yaml/key_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dtf::yaml {

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

std::string Key::typeText() const {
  switch (type) {
    case ValueType::kMap:
      return "map";
    case ValueType::kList:
      if (!choices.empty()) return "list of " + std::string(choices);
      return whole_max > 0 ? "list of whole numbers" : "list";
    case ValueType::kText:
      return "text";
    case ValueType::kTextOrMap:
      return "text or map";
    case ValueType::kListOrMap:
      return "list or map";
    case ValueType::kWhole:
      return "whole number " + rangeText();
    case ValueType::kNumber:
      return "number " + rangeText();
    case ValueType::kNumberOrMap:
      return "number " + rangeText() + ", or map";
    case ValueType::kWholeOrList:
      return "whole number " + rangeText() + ", or list of them";
    case ValueType::kChoiceOrList:
      return fmt::format("{}, whole number {}, or list of them", choices, rangeText());
    case ValueType::kBool:
      return "true or false";
    case ValueType::kChoice:
      return std::string(choices);
  }
  DTF_CHECK_MSG(false, std::string(name));
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

std::string_view parentOf(const Table& table) {
  const size_t dot = table.path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : table.path.substr(0, dot);
}

const Table* tableWith(Tables tables, std::string_view word, const Table* except) {
  if (word == "name" || word == "address") return nullptr;
  const auto has = [&](const Table* table) {
    return table != except && std::ranges::any_of(table->keys, [&](const Key& key) {
             return key.name == word && key.available;
           });
  };
  const auto firstWith = [&](const auto& is_near) -> const Table* {
    const auto found = std::ranges::find_if(
        tables, [&](const Table* table) { return is_near(*table) && has(table); });
    return found == tables.end() ? nullptr : *found;
  };
  const Table* found = nullptr;
  if (except != nullptr && !except->path.empty()) {
    const std::string below = std::string(except->path) + ".";
    found = firstWith([&](const Table& table) { return table.path.starts_with(below); });
  }
  if (except != nullptr && found == nullptr)
    found = firstWith([&](const Table& table) { return parentOf(table) == parentOf(*except); });
  return found != nullptr ? found : firstWith([](const Table&) { return true; });
}

std::string keyPath(const Table& table, std::string_view word) {
  DTF_CHECK(table.find(word) != nullptr);
  // A table for several maps lists their paths.
  const std::string_view path = table.path.substr(0, table.path.find(','));
  return path.empty() ? std::string(word) : fmt::format("{}.{}", path, word);
}

std::string settingPath(Tables tables, const Table& owner, std::string_view word) {
  const std::string_view parent = parentOf(owner);
  const auto has = [&](const Table* table) {
    return table != &owner && parentOf(*table) == parent &&
           std::any_of(table->keys.begin(), table->keys.end(),
                       [word](const Key& key) { return key.name == word && key.available; });
  };
  // The elements of a list are addressed by number.
  const bool is_choice = !parent.empty() && !parent.ends_with(".N");
  if (!is_choice || std::none_of(tables.begin(), tables.end(), has)) return keyPath(owner, word);
  return fmt::format("{}.NAME.{}", parent, word);
}

std::string_view keyWithoutSpace(Tables tables, std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon + 1 == text.size() || text[colon + 1] == ' ')
    return {};
  const std::string_view key = text.substr(0, colon);
  const auto has = [key](const Table* table) { return table->find(key) != nullptr; };
  return std::any_of(tables.begin(), tables.end(), has) ? key : std::string_view();
}

std::string nearestKey(std::string_view word, std::span<const std::string_view> words) {
  constexpr size_t kWordBytesMax = 64;
  return word.size() > kWordBytesMax ? "" : nearestWord(word, words);
}

// The words may come from a file, in any number and length.
constexpr size_t kListedWordBytesMax = 100;
constexpr size_t kListedBytesMax = 2000;

std::string suggestion(std::string_view word, std::span<const std::string_view> words) {
  const std::string near = nearestKey(word, words);
  if (!near.empty()) return " - did you mean '" + near + "'?";
  std::string list;
  for (const std::string_view each : words) {
    if (list.size() > kListedBytesMax) {
      list += ", ...";
      break;
    }
    list += (list.empty() ? "" : ", ") + std::string(each.substr(0, kListedWordBytesMax));
    if (each.size() > kListedWordBytesMax) list += "...";
  }
  return " (one of " + list + ")";
}

}  // namespace dtf::yaml
