#include "common/data/prepared_columns.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/yaml/error_at.h"
#include "common/yaml/key_table.h"

namespace dtf::data {

using cluster::NumericColumn;
using cluster::PreparedColumn;

std::vector<PreparedColumn> preparedColumns(const std::vector<std::string>& features,
                                            const std::vector<NumericColumn>& numeric) {
  const std::unordered_set<std::string_view> known(features.begin(), features.end());
  for (const NumericColumn& each : numeric)
    if (each.column != "*" && !known.contains(each.column))
      throw yaml::ErrorAt(
          ErrorCode::kBadConfig, each.mark,
          printable("numeric_columns prepares the features, and '" + each.column +
                    "' is none of them: they are the feature_columns, or all columns that have no "
                    "other use, by their names in the header" +
                    yaml::suggestion(each.column, std::vector<std::string_view>(features.begin(),
                                                                                features.end()))));
  // A table may have 10 000 columns and more.
  std::unordered_map<std::string_view, const NumericColumn*> entries;
  for (const NumericColumn& each : numeric) entries.emplace(each.column, &each);
  const auto others = entries.find("*");
  std::vector<PreparedColumn> columns;
  for (const std::string& feature : features) {
    auto entry = entries.find(feature);
    if (entry == entries.end()) entry = others;
    PreparedColumn& column = columns.emplace_back();
    if (entry != entries.end()) column.settings = *entry->second;
    column.settings.column = feature;
    column.fill = static_cast<float>(column.settings.fill_value);
  }
  return columns;
}

int64_t preparedWidth(std::span<const PreparedColumn> columns) {
  return static_cast<int64_t>(columns.size()) +
         std::ranges::count_if(
             columns, [](const PreparedColumn& each) { return each.settings.missing_indicator; });
}

void prepareRecord(std::span<const PreparedColumn> columns, std::span<const float> record,
                   std::vector<float>& features) {
  DTF_CHECK(columns.size() == record.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const PreparedColumn& column = columns[i];
    double value = std::isnan(record[i]) ? column.fill : static_cast<double>(record[i]);
    if (column.settings.log1p) value = std::log1p(value);
    if (column.settings.standardize) value = (value - column.mean) / column.stddev;
    features.push_back(static_cast<float>(value));
  }
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].settings.missing_indicator)
      features.push_back(std::isnan(record[i]) ? 1.0F : 0.0F);
}

}  // namespace dtf::data
