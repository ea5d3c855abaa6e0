#pragma once

// Constructors for the rows of key tables: one constexpr function for each type of value.

#include "common/yaml/key_table.h"

namespace dtf::yaml {

inline constexpr int64_t kCountMax =
    1'000'000'000'000;  // steps; far beyond any run, well inside double precision
inline constexpr int64_t kSeedMax = INT64_MAX;
inline constexpr NumberRange kPositive{0, 1e6, true, false};
inline constexpr NumberRange kNotNegative{0, 1e6, false, false};
inline constexpr NumberRange kSeconds{0, 86400, true, false};
inline constexpr NumberRange kPatience{0, 86400, false, false};  // seconds; 0 disables
inline constexpr NumberRange kDecay{0, 1, false, true};

constexpr Key map(std::string_view name, std::string_view help) {
  return {.name = name, .type = ValueType::kMap, .help = help};
}
constexpr Key list(std::string_view name, std::string_view help) {
  return {.name = name, .type = ValueType::kList, .help = help};
}
constexpr Key text(std::string_view name, std::string_view help) {
  return {.name = name, .type = ValueType::kText, .help = help};
}
constexpr Key textOrMap(std::string_view name, std::string_view help) {
  return {.name = name, .type = ValueType::kTextOrMap, .help = help};
}
constexpr Key listOrMap(std::string_view name, std::string_view help) {
  return {.name = name, .type = ValueType::kListOrMap, .help = help};
}
constexpr Key boolean(std::string_view name, std::string_view help) {
  return {.name = name, .type = ValueType::kBool, .help = help};
}
constexpr Key whole(std::string_view name, int64_t min, int64_t max, std::string_view help) {
  return {
      .name = name, .type = ValueType::kWhole, .help = help, .whole_min = min, .whole_max = max};
}
// One number, or a list: [height, width].
constexpr Key wholes(std::string_view name, int64_t min, int64_t max, std::string_view help) {
  Key key = whole(name, min, max, help);
  key.type = ValueType::kWholeOrList;
  return key;
}
constexpr Key number(std::string_view name, NumberRange range, std::string_view help) {
  return {.name = name, .type = ValueType::kNumber, .help = help, .number = range};
}
constexpr Key numberOrMap(std::string_view name, NumberRange range, std::string_view help) {
  return {.name = name, .type = ValueType::kNumberOrMap, .help = help, .number = range};
}
constexpr Key choice(std::string_view name, std::string_view choices, std::string_view later,
                     std::string_view help, std::string_view instead = {}) {
  return {.name = name,
          .type = ValueType::kChoice,
          .help = help,
          .choices = choices,
          .later_choices = later,
          .instead = instead};
}
constexpr Key required(Key key) {
  key.required = true;
  return key;
}
// A key of the design that this version does not support.
constexpr Key later(std::string_view name) {
  return {.name = name, .available = false};
}

}  // namespace dtf::yaml
