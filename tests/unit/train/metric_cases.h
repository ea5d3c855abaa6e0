#pragma once

// Cases for the tests of the metrics, and a metric's value of a case, which it is fed batch by
// batch.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/train/metric.h"

namespace dtf::train {

// Outputs of successive examples, with their labels.
struct JudgedCase {
  int64_t units = 1;
  std::vector<float> outputs;
  std::vector<int64_t> classes;
  std::vector<float> targets;
};

// Returns the metric of the whole case, fed `batch` examples at a time.
std::optional<double> valueOf(const model::MetricSpec& metric, OutputScale scale,
                              const JudgedCase& all, size_t batch = 3);
// In batches of one, of some and of all examples.
void expectMetricNear(const model::MetricSpec& metric, OutputScale scale, const JudgedCase& all,
                      double expected);

// Three classes; two classes; two labels each.
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
