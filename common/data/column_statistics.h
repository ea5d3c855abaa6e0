#pragma once

// The numbers that a column's preparation learns: mean, median and standard deviation of the values
// that are there.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/cluster/data_spec.h"

namespace dtf::data {

// Learns the numbers of one column. The same values in the same order give the same numbers on
// every machine, apart from the last bit of log1p, which rarely outlives the rounding to float32.
// Owns: the values for a median: all of them up to a number, of more a sample.
// Threads: thread-compatible.
class ColumnStatistics {
 public:
  // `median_max`: so many values are kept for a median.
  ColumnStatistics(const cluster::NumericColumn& settings, size_t median_max);

  void add(float value);  // which is there

  // Returns the column with its numbers. The median of two middle values is their mean. A standard
  // deviation of 0 becomes 1: all values of the column are then 0.
  // Errors: kBadData if there was no value, or the numbers are too large.
  cluster::PreparedColumn learned() const;

 private:
  // A sum and its rounding errors: Neumaier's algorithm.
  struct Sum {
    double sum = 0, rest = 0;
    void add(double value);
    double value() const { return sum + rest; }
  };
  void keep(float value);
  double median() const;

  const cluster::NumericColumn settings_;
  const size_t median_max_;
  int64_t count_ = 0;
  Sum sum_;             // of the values
  double mean_ = 0;     // of the transformed values, by Welford's algorithm
  double squares_ = 0;  // their squared distances from the mean
  struct Kept {
    uint64_t order;  // a hash of the value's place: a median of many is of the smallest
    float value;
  };
  std::vector<Kept> kept_;
  uint64_t order_below_ = UINT64_MAX;
};

}  // namespace dtf::data
