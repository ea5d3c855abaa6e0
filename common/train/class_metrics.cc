// Metrics that compare the predicted class of each example with its label.
//   top_k      share of examples for which fewer than k outputs exceed the label's output:
//              sklearn.metrics.top_k_accuracy_score, but ties count as hits
//   precision  share of the examples predicted as a class that have this label
//   recall     share of the examples with a label that are predicted as it
// With two classes, precision and recall are of class 1 (sklearn's average='binary'). With more
// classes they are the mean over the classes that occur (average='macro'), with targets the mean
// over the units. A share of no examples is 0 (zero_division=0). If an output is NaN, precision and
// recall are undefined.

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/check.h"
#include "common/train/metric.h"

namespace dtf::train {

namespace {

class TopK final : public Metric {
 public:
  explicit TopK(int64_t k) : k_(k) {}

  void add(const Judged& batch) override {
    DTF_CHECK(batch.classes.size() == static_cast<size_t>(batch.examples()));
    const auto units = static_cast<size_t>(batch.units);
    for (size_t i = 0; i < batch.classes.size(); ++i) {
      const std::span<const float> row = batch.outputs.subspan(i * units, units);
      const float own = row[static_cast<size_t>(batch.classes[i])];
      const auto larger = std::count_if(row.begin(), row.end(), [own](float each) {
        return !(each <= own);  // a NaN counts as larger
      });
      hits_ += larger < k_ ? 1 : 0;
    }
    examples_ += batch.examples();
  }
  std::optional<double> value() const override {
    if (examples_ == 0) return std::nullopt;
    return static_cast<double>(hits_) / static_cast<double>(examples_);
  }

 private:
  const int64_t k_;
  int64_t hits_ = 0, examples_ = 0;
};

// Counts for one class or unit.
struct Counts {
  int64_t right = 0, given = 0, has = 0;
};

class ClassCounter final : public Metric {
 public:
  ClassCounter(ClassCount kind, OutputScale scale, int64_t units)
      : kind_(kind),
        scale_(scale),
        middle_(scale == OutputScale::kTargets ? 0.5F : 0.0F),
        units_(static_cast<size_t>(units)),
        counts_(std::max<size_t>(units_, 2)) {
    DTF_CHECK(units > 0);
  }

  void add(const Judged& batch) override {
    DTF_CHECK(static_cast<size_t>(batch.units) == units_);
    const auto examples = static_cast<size_t>(batch.examples());
    of_targets_ |= !batch.targets.empty();
    for (size_t i = 0; i < examples; ++i) {
      const std::span<const float> row = batch.outputs.subspan(i * units_, units_);
      if (of_targets_)
        addTargets(row, batch.targets.subspan(i * units_, units_));
      else
        countClass(row, static_cast<size_t>(batch.classes[i]));
    }
  }

  std::optional<double> value() const override {
    if (undefined_) return std::nullopt;
    if (!of_targets_ && counts_.size() == 2) return share(counts_[1]);
    double sum = 0;
    size_t classes = 0;
    for (size_t i = 0; i < units_; ++i) {
      if (!of_targets_ && counts_[i].given == 0 && counts_[i].has == 0) continue;
      sum += share(counts_[i]);
      ++classes;
    }
    if (classes == 0) return std::nullopt;
    return sum / static_cast<double>(classes);
  }

 private:
  void countClass(std::span<const float> row, size_t has) {
    const std::optional<int64_t> predicted = predictedClass(scale_, row);
    undefined_ |= !predicted;
    if (!predicted) return;
    const auto given = static_cast<size_t>(*predicted);
    ++counts_.at(given).given;
    ++counts_.at(has).has;
    if (given == has) ++counts_[has].right;
  }
  void addTargets(std::span<const float> row, std::span<const float> targets) {
    for (size_t unit = 0; unit < units_; ++unit) {
      undefined_ |= std::isnan(row[unit]);
      const bool given = row[unit] > middle_, has = targets[unit] > 0.5F;
      counts_[unit].given += given ? 1 : 0;
      counts_[unit].has += has ? 1 : 0;
      counts_[unit].right += given && has ? 1 : 0;
    }
  }
  double share(const Counts& counts) const {
    const int64_t of = kind_ == ClassCount::kPrecision ? counts.given : counts.has;
    return of == 0 ? 0 : static_cast<double>(counts.right) / static_cast<double>(of);
  }

  const ClassCount kind_;
  const OutputScale scale_;
  const float middle_;
  const size_t units_;
  // By class or unit; one unit stands for two classes.
  std::vector<Counts> counts_;
  bool undefined_ = false;  // an output was NaN
  bool of_targets_ = false;
};

}  // namespace

std::unique_ptr<Metric> makeTopK(int64_t k) {
  DTF_CHECK(k > 0);
  return std::make_unique<TopK>(k);
}

std::unique_ptr<Metric> makeClassCount(ClassCount kind, OutputScale scale, int64_t units) {
  return std::make_unique<ClassCounter>(kind, scale, units);
}

}  // namespace dtf::train
