#include "common/data/csv_classes.h"

#include <fmt/format.h>

#include "common/base/error.h"
#include "common/data/csv_fields.h"
#include "common/data/csv_numbers.h"
#include "common/yaml/key_table.h"

namespace dtf::data {

namespace {

constexpr size_t kLearnedMax = 100'000;

// " - did you mean 'rome'?" Empty: no word is near.
std::string nearText(std::string_view text, const std::vector<std::string>& words) {
  const std::vector<std::string_view> all(words.begin(), words.end());
  const std::string near = yaml::nearestKey(text, all);
  return near.empty() ? "" : fmt::format(" - did you mean '{}'?", near);
}

}  // namespace

ClassReader::ClassReader(const cluster::CsvSpec& spec, bool is_learning)
    : spec_(spec), is_learning_(is_learning) {
  for (const std::string& name : spec.classNames())
    classes_.emplace(name, static_cast<int32_t>(classes_.size()));
}

std::optional<int32_t> ClassReader::find(std::string_view field) {
  if (!spec_.learns_classes && classes_.empty()) {
    const std::optional<int32_t> number = indexOf(field, spec_.decimal);
    return number ? number : booleanOf(field);
  }
  const std::string name =
      spec_.learns_classes ? className(field, spec_.decimal) : std::string(trimmed(field));
  const auto found = classes_.find(name);
  if (found != classes_.end()) return found->second;
  if (!spec_.learns_classes || !is_learning_ || isMissingField(name)) return std::nullopt;
  if (classes_.size() >= kLearnedMax)
    throw Error(ErrorCode::kBadData,
                fmt::format("column '{}' has more than {} different words, too many for classes: "
                            "list numbers to learn under target_columns",
                            spec_.label, kLearnedMax));
  return classes_.emplace(name, static_cast<int32_t>(classes_.size())).first->second;
}

std::string ClassReader::faultOf(std::string_view field) const {
  if (spec_.learns_classes && is_learning_)
    return "is a missing value, and no class to learn: mend the row, or list the classes with "
           "class_names";
  if (spec_.learns_classes)
    return "is none of the classes of the training data" + nearText(field, spec_.classNames());
  if (classes_.empty())
    return "is no class, a whole number from 0: list the classes as the table writes them with "
           "class_names, or learn them with 'class_names: {from: data}'";
  return "is none of the class_names" + nearText(field, spec_.class_names);
}

std::vector<std::string> ClassReader::names() const {
  std::vector<std::string> names(classes_.size());
  for (const auto& [name, number] : classes_) names[static_cast<size_t>(number)] = name;
  return names;
}

}  // namespace dtf::data
