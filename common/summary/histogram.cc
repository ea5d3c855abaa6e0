#include "common/summary/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <protozero/pbf_writer.hpp>

#include "common/base/check.h"

namespace dtf::summary {

namespace {

std::vector<double> makeLimits() {
  std::vector<double> positive;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
  positive.push_back(std::numeric_limits<double>::max());
  std::vector<double> limits;
  for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) limits.push_back(-*limit);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

}  // namespace

const std::vector<double>& bucketLimits() {
  static const std::vector<double> limits = makeLimits();
  return limits;
}

void Histogram::add(std::span<const float> values) {
  const std::vector<double>& limits = bucketLimits();
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double v = value;
    const auto bucket = std::upper_bound(limits.begin(), limits.end(), v) - limits.begin();
    DTF_CHECK(static_cast<size_t>(bucket) < buckets_.size());
    ++buckets_[static_cast<size_t>(bucket)];
    min_ = count_ == 0 ? v : std::min(min_, v);
    max_ = count_ == 0 ? v : std::max(max_, v);
    ++count_;
    sum_ += v;
    sum_of_squares_ += v * v;
  }
}

std::string Histogram::encode() const {
  const std::vector<double>& limits = bucketLimits();
  std::vector<double> kept_limits;
  std::vector<double> kept_counts;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const bool next_is_empty = i + 1 < buckets_.size() && buckets_[i + 1] == 0;
    // for a run of empty buckets, the last limit is enough
    if (buckets_[i] == 0 && next_is_empty) continue;
    kept_limits.push_back(limits[i]);
    kept_counts.push_back(static_cast<double>(buckets_[i]));
  }
  if (kept_limits.size() > 1 && kept_counts.back() == 0) {  // nothing above the largest value
    kept_limits.pop_back();
    kept_counts.pop_back();
  }
  DTF_CHECK(!kept_limits.empty() && kept_limits.size() == kept_counts.size());
  std::string encoded;
  protozero::pbf_writer proto(encoded);
  proto.add_double(1, min_);
  proto.add_double(2, max_);
  proto.add_double(3, static_cast<double>(count_));
  proto.add_double(4, sum_);
  proto.add_double(5, sum_of_squares_);
  proto.add_packed_double(6, kept_limits.begin(), kept_limits.end());
  proto.add_packed_double(7, kept_counts.begin(), kept_counts.end());
  return encoded;
}

}  // namespace dtf::summary
