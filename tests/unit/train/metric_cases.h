#pragma once

// What the tests of the metrics share: cases, and a metric's value of one, which is fed batch by
// batch.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/train/metric.h"

namespace dtf::train {

// Outputs of examples in a row, with what they should have been.
struct JudgedCase {
  int64_t units = 1;
  std::vector<float> outputs;
  std::vector<int64_t> classes;
  std::vector<float> targets;
};

// Of the whole case, `batch` examples at a time.
std::optional<double> valueOf(const model::MetricSpec& metric, OutputScale scale,
                              const JudgedCase& all, size_t batch = 3);
// In batches of one, of some and of all.
void expectMetricNear(const model::MetricSpec& metric, OutputScale scale, const JudgedCase& all,
                      double expected);

// Of classes, of classes 0 and 1, and of two labels each.
inline const JudgedCase kThreeClasses{
    3,
    {2, 1, 0, 0.5, 2.5, 1, 1, 0, 3, 0.2, 0.1, 0.3, 3, 2, 1, 0, 1, 0.5, 1, 1.5, 2, 2, 0, 1.75},
    {0, 1, 2, 0, 1, 1, 2, 2},
    {}};
inline const JudgedCase kTwoClasses{
    1, {2, -1, 0.5, -0.25, 0.5, -3, 1.5, -0.5}, {1, 0, 1, 1, 0, 0, 1, 0}, {}};
inline const JudgedCase kTwoLabels{
    2, {1, -1, 0.5, 2, -2, 1, -0.5, -1, 3, 0.25}, {}, {1, 0, 0, 1, 0, 1, 1, 0, 1, 0}};

}  // namespace dtf::train
