#pragma once

// TensorFlow's histograms: buckets that grow by a tenth each, from 1e-12 to 1e20, on both sides of
// zero. All histograms of all steps have the same limits.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dtf::summary {

// Returns the upper limits of the buckets, ascending: value v is in the first bucket with a limit
// greater than v. The last limit is the largest double.
const std::vector<double>& bucketLimits();

// Value type.
class Histogram {
 public:
  // Skips infinities and NaNs: they are in no bucket, in no sum, and not counted.
  void add(std::span<const float> values);

  double min() const { return min_; }
  double max() const { return max_; }
  double sum() const { return sum_; }
  double sumOfSquares() const { return sum_of_squares_; }
  uint64_t count() const { return count_; }

  // Returns an encoded HistogramProto. A run of empty buckets is written as one; there is always at
  // least one bucket.
  std::string encode() const;

 private:
  double min_ = 0;
  double max_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
  uint64_t count_ = 0;
  std::vector<uint64_t> buckets_ = std::vector<uint64_t>(bucketLimits().size());
};

}  // namespace dtf::summary
