#pragma once

// Counts over the fields of one column of a table, and the use that a model has for such a column.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "launcher/init/dataset_profile.h"

namespace dtf::launcher {

// Whether a field has no value: empty, "NA", "NaN", "null", "?" and the like.
bool isMissingField(std::string_view field);

// The most classes that init lists. A column of words with more is no class.
inline constexpr size_t kListedClassesMax = 1000;
// The most words of a column of features that init lists. More are hashed.
inline constexpr size_t kListedWordsMax = 100;

// Owns: the words that it has seen.
// Threads: thread-compatible.
class ColumnFacts {
 public:
  // Counts the next field, without the spaces around it. Returns whether it is a number.
  bool add(std::string_view field);

  // Fields with a value that no number says.
  int64_t others() const { return filled() - numbers_; }
  // Whether nearly all fields with a value are numbers.
  bool isNumeric() const;

  // Fills the counts of `column`, and decides its use as a feature.
  void judgeFeature(ColumnProfile& column) const;
  // Fills the counts of the column to learn. Returns whether its fields are classes, and false for
  // numbers. `wrong` is set where neither can be learnt: why.
  bool judgeTarget(ColumnProfile& column, std::string& wrong) const;

 private:
  int64_t filled() const { return fields_ - missing_; }
  void count(ColumnProfile& column) const;
  std::vector<WordCount> sortedWords() const;
  std::string uselessNumbers(const std::string& name) const;
  std::string uselessWords() const;

  int64_t fields_ = 0, missing_ = 0, numbers_ = 0, whole_ = 0;
  double mean_ = 0, squares_ = 0;  // Welford's sums
  std::optional<double> last_;
  bool counts_rows_ = true;  // each number is one more than the last
  std::string odd_;          // the first word
  std::unordered_map<std::string, int64_t> words_;
  bool many_ = false;
};

}  // namespace dtf::launcher
