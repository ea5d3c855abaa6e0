#pragma once

// What an evaluation says of a model beside its loss. Each metric is a running sum over batches,
// fed with what the model gave and what it should have given; scikit-learn's definitions, named
// with each family: class_metrics.cc, ranking_metrics.cc, error_metrics.cc.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "common/model/model_spec.h"

namespace dtf::train {

// One batch. Outputs are [examples, units]; either each example has a class, or each unit a target.
struct Judged {
  int64_t units = 0;
  std::span<const float> outputs;
  std::span<const int64_t> classes;
  std::span<const float> targets;
  int64_t examples() const { return static_cast<int64_t>(outputs.size()) / units; }
};

// What a loss trains outputs towards.
enum class OutputScale : uint8_t {
  kLogits,         // above 0: more likely than not
  kSoftmaxLogits,  // the largest of an example is the likeliest
  kTargets,        // the targets themselves; of classes 0 and 1
};
OutputScale scaleOf(model::Loss loss);

// Threads: thread-compatible.  Never blocks.
class Metric {
 public:
  virtual ~Metric() = default;
  // Every batch of an evaluation, in any order.
  virtual void add(const Judged& batch) = 0;
  // Of all that was added. Nullopt: not defined for these labels, such as a ranking of examples
  // that are all alike.
  virtual std::optional<double> value() const = 0;
};

std::unique_ptr<Metric> makeMetric(const model::MetricSpec& metric, OutputScale scale,
                                   int64_t units);

// One for each family.
std::unique_ptr<Metric> makeTopK(int64_t k);
enum class ClassCount : uint8_t { kPrecision, kRecall };
std::unique_ptr<Metric> makeClassCount(ClassCount kind, OutputScale scale, int64_t units);
std::unique_ptr<Metric> makeAuc(OutputScale scale, int64_t units);
// What auc keeps until an evaluation ends: kRankedBytes of each example, for each of so many
// columns.
inline constexpr uint64_t kRankedBytes = 8;
constexpr int64_t rankedColumns(int64_t units, bool of_targets) {
  return units == 2 && !of_targets ? 1 : units;
}
enum class ErrorKind : uint8_t { kMae, kMse, kRmse, kR2 };
std::unique_ptr<Metric> makeErrorMetric(ErrorKind kind, int64_t units);

}  // namespace dtf::train
