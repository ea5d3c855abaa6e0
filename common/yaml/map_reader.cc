#include "common/yaml/map_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "common/yaml/expand_path.h"
#include "common/yaml/key_hints.h"

namespace dtf::yaml {

namespace {

constexpr size_t kTextBytesMax = 4096;

// Returns a value's description for messages: "'ten'", "a list".
std::string found(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kSequence:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
      break;
  }
  return (node.quoted ? "the text " : "") + inQuotes(node.text);
}

// Returns ": a space is missing after 'batch_size:'" if a plain text was meant as a key with its
// value.
std::string missingSpace(const YamlNode& node, const Report& report) {
  if (!node.isScalar() || node.quoted) return "";
  const std::string_view key = keyWithoutSpace(report.tables(), node.text);
  return key.empty() ? "" : fmt::format(": a space is missing after '{}:'", key);
}

// Parses all of a plain scalar; nullopt if it is no such number. An overflow gives the largest
// value.
template <class T>
std::optional<T> parseNumber(const YamlNode& node) {
  if (!node.isScalar() || node.quoted) return std::nullopt;
  std::string_view text = node.text;
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    const bool negative = text.starts_with('-');
    return negative ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
  return value;
}

std::vector<std::string_view> words(std::string_view choices) {
  std::vector<std::string_view> result;
  while (!choices.empty()) {
    const size_t bar = std::min(choices.find('|'), choices.size());
    result.push_back(choices.substr(0, bar));
    choices.remove_prefix(std::min(bar + 1, choices.size()));
  }
  return result;
}

}  // namespace

void reportType(std::string_view expected, std::string_view name, const YamlNode& node,
                Report& report) {
  if (node.isNull())
    return report.error(node.where(), inQuotes(name) + " needs a value: " + std::string(expected));
  report.error(node.where(), fmt::format("expected {} for {}, got {}{}", expected, inQuotes(name),
                                         found(node), missingSpace(node, report)));
}

void reportUnavailable(std::string_view word, const Place& place, Report& report,
                       std::string_view instead) {
  report.error(place, fmt::format("{} is not available in this version{}{}", inQuotes(word),
                                  instead.empty() ? "" : ": ", instead));
}

void reportUnknown(std::string_view kind, std::string_view word, std::string_view label,
                   const Place& place, const Table& table, Report& report, const YamlNode* within) {
  const std::vector<std::string_view> names = table.names();
  const std::string in = label.empty() ? "" : " in " + inQuotes(label);
  const bool is_flag = report.isFlag(place);
  std::string hint;
  if (const std::string_view key = keyWithoutSpace(report.tables(), word); !key.empty())
    hint = fmt::format(" - a space is missing after '{}:'", key);
  const MisplacedKey misplaced{report.tables(), table, within, is_flag};
  if (hint.empty()) hint = aliasHint(misplaced, word);
  if (hint.empty() && nearestKey(word, names).empty()) hint = ownerHint(misplaced, word);
  if (hint.empty()) {
    hint = suggestion(word, names);
    if (is_flag && label.empty() && nearestKey(word, names).empty())
      hint += "; a key below them has dots, as in train.steps=50";
  }
  report.error(place, fmt::format("unknown {} {}{}{}", kind, inQuotes(word), in, hint));
}

std::optional<int64_t> readWhole(const YamlNode& node, const Key& key, Report& report) {
  DTF_CHECK_MSG(key.whole_min < key.whole_max, std::string(key.name));
  const std::optional<int64_t> value = parseNumber<int64_t>(node);
  if (!value) {
    reportType("a whole number", key.name, node, report);
    return std::nullopt;
  }
  const std::string_view digits =
      std::string_view(node.text).substr(node.text.find_first_not_of("+-"));
  if (digits.size() > 1 && digits.starts_with('0')) {
    report.error(node.where(),
                 fmt::format("{} begins with 0, which YAML may read as octal: write {}",
                             found(node), *value));
    return std::nullopt;
  }
  if (!key.inRange(*value)) {
    report.error(node.where(), fmt::format("{} must be {}, got {}", inQuotes(key.name),
                                           key.rangeText(), found(node)));
    return std::nullopt;
  }
  return value;
}

std::optional<double> readNumber(const YamlNode& node, const Key& key, Report& report) {
  DTF_CHECK_MSG(key.number.min < key.number.max, std::string(key.name));
  std::optional<double> value = parseNumber<double>(node);
  // YAML's words for infinities and NaN are numbers, too, outside of every range.
  if (!value && node.isScalar() && !node.quoted &&
      (node.text == ".inf" || node.text == "-.inf" || node.text == ".nan"))
    value = std::nan("");
  if (!value) {
    reportType("a number", key.name, node, report);
    return std::nullopt;
  }
  if (!std::isfinite(*value) || !key.inRange(*value)) {
    report.error(node.where(), fmt::format("{} must be {}, got {}", inQuotes(key.name),
                                           key.rangeText(), found(node)));
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> readText(const YamlNode& node, std::string_view name, Report& report) {
  if (!node.isScalar()) {
    reportType("a text", name, node, report);
    return std::nullopt;
  }
  if (node.text.empty()) {
    report.error(node.where(), inQuotes(name) + " is empty: write a text, or leave it out");
    return std::nullopt;
  }
  const bool control = std::any_of(node.text.begin(), node.text.end(),
                                   [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (control || node.text.size() > kTextBytesMax) {
    report.error(node.where(), inQuotes(name) + (control ? " holds a control character"
                                                         : " is longer than 4096 bytes"));
    return std::nullopt;
  }
  return node.text;
}

std::optional<size_t> readChoice(const YamlNode& node, const Key& key, Report& report) {
  const std::vector<std::string_view> choices = words(key.choices);
  DTF_CHECK_MSG(!choices.empty(), std::string(key.name));
  if (!node.isScalar()) {
    reportType(fmt::format("{}", fmt::join(choices, ", ")), key.name, node, report);
    return std::nullopt;
  }
  const auto chosen = std::find(choices.begin(), choices.end(), node.text);
  if (chosen != choices.end()) return chosen - choices.begin();
  const std::vector<std::string_view> later = words(key.later_choices);
  if (std::find(later.begin(), later.end(), node.text) != later.end()) {
    reportUnavailable(node.text, node.place, report, key.instead);
  } else {
    report.error(node.place, fmt::format("unknown {} {}{}", key.name, inQuotes(node.text),
                                         suggestion(node.text, choices)));
  }
  return std::nullopt;
}

namespace {

// Returns whether a plain scalar may be the value of `key`, by its type alone.
bool mayBe(const YamlNode& node, const Key& key) {
  switch (key.type) {
    case ValueType::kWhole:
    case ValueType::kWholeOrList:
      return parseNumber<int64_t>(node).has_value();
    case ValueType::kNumber:
    case ValueType::kNumberOrMap:
      return parseNumber<double>(node).has_value();
    default:
      return false;
  }
}

// Returns ": write {rate: 0.3}" for 'dropout: 0.3', a number in place of a map whose first required
// key takes it; empty for other values.
std::string asMap(const YamlNode& node, const Table& table) {
  std::string map;
  for (const Key& key : table.keys) {
    if (!key.required) continue;
    if (map.empty() && !mayBe(node, key)) return "";
    map += map.empty() ? fmt::format("{}: {}", key.name, node.text)
                       : fmt::format(", {}: ...", key.name);
  }
  return map.empty() ? "" : fmt::format(": write {{{}}}", map);
}

}  // namespace

MapReader::MapReader(const YamlNode& node, const Table& table, std::string_view label,
                     Report& report)
    : node_(node), table_(table), report_(report) {
  if (!node.isMap() && !node.isNull()) {
    const std::string hint = asMap(node, table);
    report.error(node.where(),
                 fmt::format("expected a map for {}, got {}{}", inQuotes(label), found(node),
                             hint.empty() ? missingSpace(node, report) : hint));
    return;
  }
  for (const YamlNode& child : node.children) {
    const Key* key = table.find(child.key);
    if (key == nullptr) {
      reportUnknown("key", child.key, label, child.key_place, table, report, &node);
    } else if (!key->available) {
      reportUnavailable(child.key, child.key_place, report);
    }
  }
  for (const Key& key : table.keys) {
    if (!key.required || node.find(key.name) != nullptr) continue;
    const std::string in = label.empty() ? "" : " in " + inQuotes(label);
    report.error(node.key_place,
                 fmt::format("missing key {}{}: {}", inQuotes(key.name), in, key.help));
  }
}

const YamlNode* MapReader::find(std::string_view key) const {
  const Key& entry = table_.at(key);
  const YamlNode* child = node_.find(key);
  if (child == nullptr || !entry.available) return nullptr;
  if (child->isNull()) {
    report_.error(child->key_place, fmt::format("{} needs a value: {}", inQuotes(key), entry.help));
    return nullptr;
  }
  return child;
}

bool MapReader::number(std::string_view key, double& value) const {
  const YamlNode* node = find(key);
  if (node == nullptr) return false;
  const std::optional<double> read = readNumber(*node, table_.at(key), report_);
  value = read.value_or(value);
  return read.has_value();
}

bool MapReader::text(std::string_view key, std::string& value) const {
  const YamlNode* node = find(key);
  if (node == nullptr) return false;
  std::optional<std::string> read = readText(*node, key, report_);
  if (read) value = std::move(*read);
  return read.has_value();
}

bool MapReader::path(std::string_view key, std::string& value) const {
  if (!text(key, value)) return false;
  const std::string wrong = expandPath(value);
  if (!wrong.empty()) report_.error(find(key)->where(), wrong);
  return wrong.empty();
}

bool MapReader::boolean(std::string_view key, bool& value) const {
  const YamlNode* node = find(key);
  if (node == nullptr) return false;
  const bool is_true = node->text == "true" || node->text == "True" || node->text == "TRUE";
  const bool is_false = node->text == "false" || node->text == "False" || node->text == "FALSE";
  if (!node->isScalar() || node->quoted || (!is_true && !is_false)) {
    reportType("true or false", key, *node, report_);
    return false;
  }
  value = is_true;
  return true;
}

bool MapReader::word(std::string_view key, std::string& value) const {
  const YamlNode* node = find(key);
  if (node == nullptr || !readChoice(*node, table_.at(key), report_)) return false;
  value = node->text;
  return true;
}

bool MapReader::isWord(std::string_view key) const {
  const YamlNode* node = find(key);
  return node != nullptr && node->isScalar() && !parseNumber<int64_t>(*node);
}

bool MapReader::wholes(std::string_view key, std::span<int64_t> values) const {
  DTF_CHECK(!values.empty());
  const YamlNode* node = find(key);
  if (node == nullptr) return false;
  const Key& entry = table_.at(key);
  if (!node->isSequence()) {
    const std::optional<int64_t> value = readWhole(*node, entry, report_);
    if (value) std::fill(values.begin(), values.end(), *value);
    return value.has_value();
  }
  if (node->children.size() != values.size()) {
    report_.error(node->where(), fmt::format("{} must be one number or {} of them, got {}",
                                             inQuotes(key), values.size(), node->children.size()));
    return false;
  }
  bool all = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::optional<int64_t> value = readWhole(node->children[i], entry, report_);
    if (value) values[i] = *value;
    all = all && value;
  }
  return all;
}

const std::vector<YamlNode>& MapReader::list(std::string_view key) const {
  static const std::vector<YamlNode> kNone;
  const YamlNode* node = find(key);
  if (node == nullptr) return kNone;
  if (!node->isSequence()) {
    reportType("a list", key, *node, report_);
    return kNone;
  }
  return node->children;
}

namespace {

// Reports two names where one must be chosen. If the second came from the command line, the command
// line is to be changed, not the file.
void reportTwoAlternatives(const YamlNode& node, const Table& table, std::string_view kind,
                           Report& report) {
  DTF_CHECK(node.isMap() && node.children.size() > 1);
  const YamlNode& first = node.children[0];
  const YamlNode& second = node.children[1];
  if (report.isFlag(second.key_place) && !report.isFlag(first.key_place)) {
    const bool is_alternative = table.find(second.key) != nullptr;
    return report.error(
        second.key_place,
        is_alternative
            ? fmt::format("the file chooses the {} {}: to use {}, choose it first, --set {}={}",
                          kind, inQuotes(first.key), inQuotes(second.key), table.path, second.key)
            : fmt::format("{} is no {}: settings of {} are below its name, --set {}.{}.{}=VALUE",
                          inQuotes(second.key), kind, inQuotes(first.key), table.path, first.key,
                          second.key));
  }
  std::string hint = fmt::format(", {} and {}", inQuotes(first.key), inQuotes(second.key));
  if (first.isNull() && table.find(second.key) == nullptr)
    hint += fmt::format(": indent the settings of {} further", inQuotes(first.key));
  report.error(node.where(), fmt::format("expected one {}, got a map{}", kind, hint));
}

}  // namespace

std::optional<Alternative> readAlternative(const YamlNode& node, const Table& table,
                                           std::string_view kind, Report& report) {
  if (node.isMap() && node.children.size() > 1) {
    reportTwoAlternatives(node, table, kind, report);
    return std::nullopt;
  }
  if (!node.isScalar() && !(node.isMap() && node.children.size() == 1)) {
    report.error(node.where(), fmt::format("expected one {}, got {}", kind, found(node)));
    return std::nullopt;
  }
  Alternative result;
  if (node.isScalar()) {
    result.settings.key = node.text;
    result.settings.place = result.settings.key_place = node.place;
  } else {
    result.settings = node.children[0];
  }
  const YamlNode& settings = result.settings;
  result.key = table.find(settings.key);
  if (result.key == nullptr) {
    reportUnknown(kind, settings.key, "", settings.key_place, table, report);
    return std::nullopt;
  }
  if (!result.key->available) {
    reportUnavailable(settings.key, settings.key_place, report);
    return std::nullopt;
  }
  return result;
}

}  // namespace dtf::yaml
