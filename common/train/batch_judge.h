#pragma once

// Applies a model's metrics to its outputs, batch by batch.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/model/model_spec.h"
#include "common/tensor/dtype.h"
#include "common/train/confusion_matrix.h"
#include "common/train/metric.h"

namespace dtf::train {

// Value type.
struct MetricValue {
  std::string name;             // as in the job file: "auc"
  std::optional<double> value;  // none: undefined, see Metric::value()
  bool operator==(const MetricValue&) const = default;
};

// The metrics of one pass over data, which take() ends.
// Owns: the metrics.
// Threads: thread-compatible.
class BatchJudge {
 public:
  // `counts_classes`: also counts the predicted classes; only for a model of classes (DTF_CHECK).
  explicit BatchJudge(const model::ModelSpec& model, bool counts_classes = false);

  bool asksForNothing() const { return wanted_.empty() && !confusion_; }

  // `outputs`: [batch, units]. `labels`: classes of type `dtype`, or float32 targets shaped like
  // the outputs.
  void add(std::span<const float> outputs, int64_t batch, DType dtype, const std::byte* labels);

  // Adds the value of a tensor in one batch: the `index`th of the model's scalars.
  size_t scalars() const { return scalars_.size(); }
  void addScalar(size_t index, double value, int64_t batch);

  // Returns the metrics over all batches since the last call, in the order of the file, and then
  // the means of the scalars, each batch weighted by its examples. Returns an empty list if there
  // were no batches.
  std::vector<MetricValue> take();

  // Returns the counts since the last call; nullopt without `counts_classes`.
  std::optional<ConfusionMatrix> takeClasses();

 private:
  const std::vector<model::MetricSpec> wanted_;
  const OutputScale scale_;
  // The sum over the batches. Value type.
  struct ScalarSum {
    std::string name;
    double sum = 0;
    int64_t examples = 0;
  };
  std::vector<ScalarSum> scalars_;
  std::vector<std::unique_ptr<Metric>> metrics_;
  std::optional<ConfusionMatrix> confusion_;
  std::vector<int64_t> classes_;  // labels of one batch, converted
};

}  // namespace dtf::train
