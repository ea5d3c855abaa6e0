// Metrics of the distance between outputs and targets. The target of a class is its one-hot row;
// with one unit it is the class number. Each metric is computed per unit over all examples, then
// averaged over the units:
//   mae, mse, rmse  mean of |output - target|, mean of its square, root of the latter
//   r2              1 - sum((target - output)^2) / sum((target - mean of targets)^2); if all
//                   targets are equal: 1 for exact outputs, else 0
// sklearn.metrics.mean_absolute_error, mean_squared_error, root_mean_squared_error, r2_score.

#include <cmath>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/train/metric.h"

namespace dtf::train {

namespace {

// Sums for one unit. The spread of the targets uses Welford's method (1962), which keeps its digits
// when the mean is large.
struct UnitSums {
  double absolute = 0, squares = 0;
  double mean = 0, spread = 0;  // of the targets: sum((target - mean)^2)
  double count = 0;

  void add(double output, double target) {
    absolute += std::abs(output - target);
    squares += (output - target) * (output - target);
    count += 1;
    const double from_mean = target - mean;
    mean += from_mean / count;
    spread += from_mean * (target - mean);
  }
  double r2() const {
    if (spread > 0) return 1 - squares / spread;
    if (std::isnan(squares)) return squares;
    return squares == 0 ? 1 : 0;
  }
};

class ErrorMetric final : public Metric {
 public:
  ErrorMetric(ErrorKind kind, int64_t units) : kind_(kind), units_(static_cast<size_t>(units)) {
    DTF_CHECK(units > 0);
  }

  void add(const Judged& batch) override {
    DTF_CHECK(static_cast<size_t>(batch.units) == units_.size());
    const size_t units = units_.size();
    for (size_t i = 0; i < batch.outputs.size(); ++i) {
      const size_t unit = i % units;
      const double target = batch.targets.empty() ? targetOf(batch.classes[i / units], unit)
                                                  : double{batch.targets[i]};
      units_[unit].add(batch.outputs[i], target);
    }
  }

  std::optional<double> value() const override {
    if (units_[0].count == 0) return std::nullopt;
    double sum = 0;
    for (const UnitSums& unit : units_) sum += of(unit);
    if (!std::isfinite(sum)) return std::nullopt;  // an output was not finite
    return sum / static_cast<double>(units_.size());
  }

 private:
  double targetOf(int64_t label, size_t unit) const {
    if (units_.size() == 1) return static_cast<double>(label);
    return static_cast<size_t>(label) == unit ? 1 : 0;
  }
  double of(const UnitSums& unit) const {
    switch (kind_) {
      case ErrorKind::kMae:
        return unit.absolute / unit.count;
      case ErrorKind::kMse:
        return unit.squares / unit.count;
      case ErrorKind::kRmse:
        return std::sqrt(unit.squares / unit.count);
      case ErrorKind::kR2:
        return unit.r2();
    }
    DTF_CHECK_MSG(false, std::to_string(static_cast<int>(kind_)));
  }

  const ErrorKind kind_;
  std::vector<UnitSums> units_;
};

}  // namespace

std::unique_ptr<Metric> makeErrorMetric(ErrorKind kind, int64_t units) {
  return std::make_unique<ErrorMetric>(kind, units);
}

}  // namespace dtf::train
