#pragma once

// The metrics that a model asks for, of its outputs for one batch after another.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/model/model_spec.h"
#include "common/tensor/dtype.h"
#include "common/train/metric.h"

namespace dtf::train {

// Value type.
struct MetricValue {
  std::string name;             // as the file has it: "auc"
  std::optional<double> value;  // none: not defined on these data, see Metric::value()
  bool operator==(const MetricValue&) const = default;
};

// Owns: the metrics of one run.
// Threads: thread-compatible.
class BatchJudge {
 public:
  explicit BatchJudge(const model::ModelSpec& model);

  bool asksForNothing() const { return wanted_.empty(); }

  // `outputs`: [batch, units]; `labels`: the batch's, classes of `dtype`, or float32 targets like
  // the outputs.
  void add(std::span<const float> outputs, int64_t batch, DType dtype, const std::byte* labels);

  // Of what was added since the last call, in the order of the file; empty where nothing was.
  std::vector<MetricValue> take();

 private:
  const std::vector<model::MetricSpec> wanted_;
  const OutputScale scale_;
  std::vector<std::unique_ptr<Metric>> metrics_;
  std::vector<int64_t> classes_;  // of one batch
};

}  // namespace dtf::train
