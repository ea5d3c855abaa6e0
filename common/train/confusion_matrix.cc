#include "common/train/confusion_matrix.h"

#include <algorithm>
#include <tuple>

#include "common/base/check.h"

namespace dtf::train {

namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void addScores(const ClassScores& scores, double weight, ClassScores& sums) {
  sums.precision += weight * scores.precision;
  sums.recall += weight * scores.recall;
  sums.f1 += weight * scores.f1;
}

}  // namespace

void ConfusionMatrix::add(int64_t truth, std::optional<int64_t> predicted) {
  DTF_CHECK(truth >= 0 && predicted.value_or(0) >= 0);
  ++(predicted ? counts_[{truth, *predicted}] : unpredicted_[truth]);
}

int64_t ConfusionMatrix::count(int64_t truth, int64_t predicted) const {
  const auto found = counts_.find({truth, predicted});
  return found == counts_.end() ? 0 : found->second;
}

ClassReport ConfusionMatrix::report() const {
  ClassReport report;
  std::map<int64_t, ClassFigures> figures;
  int64_t right = 0;
  for (const auto& [classes, count] : counts_) {
    figures[classes.first].support += count;
    figures[classes.second].predicted += count;
    report.examples += count;
    if (classes.first == classes.second) right += count;
  }
  for (const auto& [truth, count] : unpredicted_) {
    figures[truth].support += count;
    report.examples += count;
    report.unpredicted += count;
  }
  report.accuracy = share(right, report.examples);
  for (auto& [index, each] : figures) {
    each.index = index;
    const int64_t hits = count(index, index);
    each.scores = {share(hits, each.predicted), share(hits, each.support),
                   share(2 * hits, each.predicted + each.support)};
    addScores(each.scores, 1 / static_cast<double>(figures.size()), report.macro);
    addScores(each.scores, share(each.support, report.examples), report.weighted);
    report.classes.push_back(each);
  }
  return report;
}

std::vector<ConfusedPair> ConfusionMatrix::mostConfused(size_t pairs_max) const {
  std::vector<ConfusedPair> pairs;
  for (const auto& [classes, count] : counts_)
    if (classes.first != classes.second) pairs.push_back({classes.first, classes.second, count});
  std::ranges::sort(pairs, {}, [](const ConfusedPair& pair) {
    return std::tuple(-pair.count, pair.truth, pair.predicted);
  });
  pairs.resize(std::min(pairs.size(), pairs_max));
  return pairs;
}

}  // namespace dtf::train
