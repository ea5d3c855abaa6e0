// auc: the area under the ROC curve. It is the probability that an example of a class has a larger
// output for the class than an example of another one; equal outputs count half (Hanley and McNeil,
// 1982). Equals sklearn.metrics.roc_auc_score. With two classes it is the area of class 1. With
// more classes, or with targets, it is the mean over those with both positive and negative examples
// (multi_class='ovr', average='macro').

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/check.h"
#include "common/train/metric.h"

namespace dtf::train {

namespace {

struct Scored {
  float score = 0;
  bool positive = false;
};
static_assert(sizeof(Scored) == kRankedBytes);

// Returns nullopt if all are positive or none is.
std::optional<double> areaOf(std::vector<Scored> all) {
  std::sort(all.begin(), all.end(),
            [](const Scored& a, const Scored& b) { return a.score < b.score; });
  double negatives = 0, positives = 0, area = 0;
  for (size_t begin = 0; begin < all.size();) {
    double equal_negatives = 0, equal_positives = 0;
    size_t end = begin;
    for (; end < all.size() && all[end].score == all[begin].score; ++end)
      ++(all[end].positive ? equal_positives : equal_negatives);
    area += equal_positives * (negatives + equal_negatives / 2);
    negatives += equal_negatives;
    positives += equal_positives;
    begin = end;
  }
  if (positives == 0 || negatives == 0) return std::nullopt;
  return area / (positives * negatives);
}

class Auc final : public Metric {
 public:
  Auc(OutputScale scale, int64_t units)
      : softmax_(scale == OutputScale::kSoftmaxLogits),
        units_(static_cast<size_t>(units)),
        scored_(static_cast<size_t>(rankedColumns(units, false))) {
    DTF_CHECK(units > 0);
  }

  void add(const Judged& batch) override {
    DTF_CHECK(static_cast<size_t>(batch.units) == units_);
    const auto examples = static_cast<size_t>(batch.examples());
    const bool of_targets = !batch.targets.empty();
    if (of_targets) scored_.resize(static_cast<size_t>(rankedColumns(batch.units, true)));
    for (size_t i = 0; i < examples; ++i) {
      const std::span<const float> row = batch.outputs.subspan(i * units_, units_);
      if (softmax_ && !of_targets && units_ > 2) setOdds(row);
      for (size_t column = 0; column < scored_.size(); ++column) {
        // With two classes or one unit, class 1 is ranked.
        const size_t asked = of_targets || units_ > 2 ? column : 1;
        const bool positive = of_targets ? batch.targets[i * units_ + column] > 0.5F
                                         : static_cast<size_t>(batch.classes[i]) == asked;
        const float score = of_targets ? row[column] : scoreOf(row, asked);
        if (std::isnan(score)) undefined_ = true;  // a NaN has no rank
        scored_[column].push_back({score, positive});
      }
    }
  }

  std::optional<double> value() const override {
    if (undefined_) return std::nullopt;
    double sum = 0;
    size_t defined = 0;
    for (const std::vector<Scored>& column : scored_)
      if (const std::optional<double> area = areaOf(column)) {
        sum += *area;
        ++defined;
      }
    if (defined == 0) return std::nullopt;
    return sum / static_cast<double>(defined);
  }

 private:
  // Returns a score that grows with the probability of class `asked`.
  float scoreOf(std::span<const float> row, size_t asked) const {
    if (row.size() == 1) return row[0];
    if (row.size() == 2) return row[asked] - row[1 - asked];
    return softmax_ ? odds_[asked] : row[asked];
  }

  // Sets the log odds of each class; as float32, probabilities near 1 would be equal. There may be
  // thousands of classes, so one sum serves the whole row. It leaves out the largest term, so it is
  // exact for the likeliest class. For any other class the 1 of the largest term remains, and no
  // digit is lost.
  void setOdds(std::span<const float> row) {
    const auto likeliest =
        static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    const double largest = row[likeliest];
    double rest = 0;
    for (size_t i = 0; i < row.size(); ++i)
      if (i != likeliest) rest += std::exp(row[i] - largest);
    odds_.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      const double above = row[i] - largest;
      const double others = i == likeliest ? rest : 1 + rest - std::exp(above);
      odds_[i] = static_cast<float>(above - std::log(others));
    }
  }

  const bool softmax_;
  const size_t units_;
  std::vector<std::vector<Scored>> scored_;  // by class or unit
  std::vector<float> odds_;                  // log odds of one example's classes
  bool undefined_ = false;
};

}  // namespace

std::unique_ptr<Metric> makeAuc(OutputScale scale, int64_t units) {
  return std::make_unique<Auc>(scale, units);
}

}  // namespace dtf::train
