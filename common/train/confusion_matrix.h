#pragma once

// Counts of an evaluation's examples by their class and the predicted one, and the figures that
// follow from them, with scikit-learn's definitions.

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace dtf::train {

// Precision, recall and F1. A share of no examples is 0 (zero_division=0).
struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;
};

// A class that an example has, or that was predicted.
struct ClassFigures {
  int64_t index = 0;
  int64_t support = 0;    // examples of this class
  int64_t predicted = 0;  // examples that were predicted as it
  ClassScores scores;
};

// Examples of one class that were predicted as another.
struct ConfusedPair {
  int64_t truth = 0, predicted = 0, count = 0;
};

// Value type.
struct ClassReport {
  std::vector<ClassFigures> classes;  // by index; those without support or prediction are left out
  ClassScores macro;                  // the means over `classes`
  ClassScores weighted;               // the means with the support as the weight
  double accuracy = 0;
  int64_t examples = 0;
  int64_t unpredicted = 0;  // of these: an output is NaN, so they have no predicted class
};

// A count for each pair of classes that occurs, so its size is bounded by the number of examples.
// Threads: thread-compatible.
class ConfusionMatrix {
 public:
  // `predicted`: nullopt if an output is NaN.
  void add(int64_t truth, std::optional<int64_t> predicted);

  int64_t count(int64_t truth, int64_t predicted) const;

  ClassReport report() const;

  // Returns the pairs of different classes with most examples, the largest first; equal ones by
  // class. At most `pairs_max`.
  std::vector<ConfusedPair> mostConfused(size_t pairs_max) const;

 private:
  std::map<std::pair<int64_t, int64_t>, int64_t> counts_;  // (truth, predicted)
  std::map<int64_t, int64_t> unpredicted_;                 // by truth
};

}  // namespace dtf::train
