#pragma once

// The metrics of a model beside its loss. Each is a running sum over batches of outputs and labels,
// with scikit-learn's definition. The families are in class_metrics.cc, ranking_metrics.cc and
// error_metrics.cc.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "common/model/model_spec.h"

namespace dtf::train {

// One batch. `outputs` is [examples, units]. Either `classes` has a label per example, or `targets`
// has the shape of the outputs.
struct Judged {
  int64_t units = 0;
  std::span<const float> outputs;
  std::span<const int64_t> classes;
  std::span<const float> targets;
  int64_t examples() const { return static_cast<int64_t>(outputs.size()) / units; }
};

// The scale of outputs, which follows from the loss.
enum class OutputScale : uint8_t {
  kLogits,         // above 0: more likely than not
  kSoftmaxLogits,  // the class with the largest output is the likeliest
  kTargets,        // estimates of the targets; of 0 and 1 for classes
};
OutputScale scaleOf(model::Loss loss);

// Returns the class that the outputs of one example predict: the largest output, the first of equal
// ones; with one unit class 1 above the middle of the scale, else class 0. Nullopt if one is NaN.
std::optional<int64_t> predictedClass(OutputScale scale, std::span<const float> outputs);

// A running metric.
// Threads: thread-compatible.
// Blocks: never.
class Metric {
 public:
  virtual ~Metric() = default;
  // Adds a batch of an evaluation. The order of batches doesn't matter.
  virtual void add(const Judged& batch) = 0;
  // Returns the metric over all added batches. Nullopt if it is undefined: there are no examples,
  // an output is NaN, or a ranking has labels of one kind only.
  virtual std::optional<double> value() const = 0;
};

std::unique_ptr<Metric> makeMetric(const model::MetricSpec& metric, OutputScale scale,
                                   int64_t units);

// Constructors for each family; makeMetric() chooses one.
std::unique_ptr<Metric> makeTopK(int64_t k);
enum class ClassCount : uint8_t { kPrecision, kRecall };
std::unique_ptr<Metric> makeClassCount(ClassCount kind, OutputScale scale, int64_t units);
std::unique_ptr<Metric> makeAuc(OutputScale scale, int64_t units);
// Bytes that auc keeps per example and ranked column until an evaluation ends.
inline constexpr uint64_t kRankedBytes = 8;
constexpr int64_t rankedColumns(int64_t units, bool of_targets) {
  return units == 2 && !of_targets ? 1 : units;
}
enum class ErrorKind : uint8_t { kMae, kMse, kRmse, kR2 };
std::unique_ptr<Metric> makeErrorMetric(ErrorKind kind, int64_t units);

}  // namespace dtf::train
