#include "common/data/column_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::data {

namespace {

using Fill = cluster::NumericColumn::Fill;

// Returns a hash of `index`: SplitMix64's finalizer (Steele, Lea and Flood, OOPSLA 2014).
uint64_t orderOf(uint64_t index) {
  uint64_t z = index + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

ColumnStatistics::ColumnStatistics(const cluster::NumericColumn& settings, size_t median_max)
    : settings_(settings), median_max_(median_max) {
  DTF_CHECK(median_max > 1);
}

void ColumnStatistics::Sum::add(double value) {
  const double next = sum + value;
  rest += std::abs(sum) >= std::abs(value) ? (sum - next) + value : (value - next) + sum;
  sum = next;
}

void ColumnStatistics::add(float value) {
  DTF_CHECK(std::isfinite(value));
  if (settings_.fill == Fill::kMedian) keep(value);
  ++count_;
  if (settings_.fill == Fill::kMean) sum_.add(value);
  if (!settings_.standardize) return;
  const double x = settings_.log1p ? std::log1p(static_cast<double>(value)) : value;
  const double distance = x - mean_;
  mean_ += distance / static_cast<double>(count_);
  squares_ += distance * (x - mean_);
}

void ColumnStatistics::keep(float value) {
  const uint64_t order = orderOf(static_cast<uint64_t>(count_));
  if (order >= order_below_) return;
  kept_.push_back({order, value});
  if (kept_.size() <= median_max_) return;
  order_below_ /= 2;
  std::erase_if(kept_, [this](const Kept& each) { return each.order >= order_below_; });
}

double ColumnStatistics::median() const {
  std::vector<float> values;
  values.reserve(kept_.size());
  for (const Kept& each : kept_) values.push_back(each.value);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const float below = *std::max_element(values.begin(), middle);
  return (static_cast<double>(below) + *middle) / 2;
}

cluster::PreparedColumn ColumnStatistics::learned() const {
  if (count_ == 0)
    throw Error(ErrorCode::kBadData,
                printable(fmt::format(
                    "column '{}' has no value in the training data, from which its preparation "
                    "could learn: leave the column out, or give 'fill' a number without "
                    "'standardize'",
                    settings_.column)));
  cluster::PreparedColumn column{settings_};
  column.fill = settings_.fill_value;
  if (settings_.fill == Fill::kMean) column.fill = sum_.value() / static_cast<double>(count_);
  if (settings_.fill == Fill::kMedian) column.fill = median();
  if (settings_.standardize) {
    column.mean = mean_;
    column.stddev = std::sqrt(squares_ / static_cast<double>(count_));
  }
  for (double* const number : {&column.fill, &column.mean, &column.stddev}) {
    const auto rounded = static_cast<float>(*number);
    if (!std::isfinite(rounded))
      throw Error(ErrorCode::kBadData,
                  printable(fmt::format("the numbers of column '{}' are too large to standardize",
                                        settings_.column)));
    *number = rounded;
  }
  if (column.stddev == 0) column.stddev = 1;
  return column;
}

}  // namespace dtf::data
