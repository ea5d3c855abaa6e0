#include "tests/bench/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace dtf::bench {

namespace {

constexpr size_t kNameWidth = 24;
constexpr size_t kColumnWidth = 14;

std::string number(double value) {
  if (std::isnan(value)) return "-";
  return fmt::format("{:.{}f}", value, value >= 1000 ? 0 : 2);
}

}  // namespace

void Report::add(std::string what, std::vector<double> values) {
  DTF_CHECK(values.size() == columns_.size());
  rows_.push_back({std::move(what), std::move(values)});
}

std::vector<std::string> Report::below(const std::string& column, const std::string& goal) const {
  const auto measured = std::find(columns_.begin(), columns_.end(), column);
  const auto wanted = std::find(columns_.begin(), columns_.end(), goal);
  std::vector<std::string> found;
  if (measured == columns_.end() || wanted == columns_.end()) return found;
  for (const Row& row : rows_) {
    const double value = row.values[static_cast<size_t>(measured - columns_.begin())];
    const double least = row.values[static_cast<size_t>(wanted - columns_.begin())];
    if (value < least)
      found.push_back(
          fmt::format("{}: {}, {} of {}", title_, row.what, number(value), number(least)));
  }
  return found;
}

std::string Report::table() const {
  std::string text = fmt::format("{:<{}}", title_, kNameWidth);
  for (const auto& column : columns_) text += fmt::format("{:>{}}", column, kColumnWidth);
  text += '\n';
  for (const Row& row : rows_) {
    text += fmt::format("{:<{}}", row.what, kNameWidth);
    for (const double value : row.values)
      text += fmt::format("{:>{}}", number(value), kColumnWidth);
    text += '\n';
  }
  return text;
}

Json Report::json() const {
  auto rows = Json::array();
  for (const Row& row : rows_) {
    Json line{{"what", row.what}};
    for (size_t i = 0; i < columns_.size(); ++i)
      if (!std::isnan(row.values[i])) line[columns_[i]] = row.values[i];
    rows.push_back(std::move(line));
  }
  return {{"title", title_}, {"rows", std::move(rows)}};
}

double percentile(std::vector<double> values, double percent) {
  DTF_CHECK(!values.empty());
  const auto index = static_cast<size_t>(percent / 100 * static_cast<double>(values.size() - 1));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double median(std::vector<double> values) {
  return percentile(std::move(values), 50);
}

}  // namespace dtf::bench
