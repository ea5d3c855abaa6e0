#pragma once

// Counts over the fields of one column of a table, and the use that a model has for such a column.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/data/csv_numbers.h"
#include "launcher/init/dataset_profile.h"

namespace dtf::launcher {

using data::isMissingField;

// Returns the number that a model may read in a field, whose decimals follow `decimal`; nullopt: it
// has none.
std::optional<double> numberOfField(std::string_view field, char decimal = '.');

// Whether a field is a day, with or without a time: "2024-03-31T08:15", "31.3.2024", "3/31/2024".
bool isDate(std::string_view field);

// The most classes that init lists. A column of words with more is no class.
inline constexpr size_t kListedClassesMax = 1000;
// The most words of a column of features that init lists. More are hashed.
inline constexpr size_t kListedWordsMax = 100;

// How many different words there are, from a sample of their checksums: those that end in so many
// zero bits (P. Flajolet, "On Adaptive Sampling", 1990). Exact up to `sample_max` words, then off
// by some percent: about 120 by the root of `sample_max`. Owns: the sample. Threads:
// thread-compatible.
class DistinctWords {
 public:
  static constexpr size_t kSampleMax = 1024;
  static constexpr size_t kChecksumCost = 48;  // of an entry of the sample

  explicit DistinctWords(size_t sample_max = kSampleMax) : sample_max_(sample_max) {}

  void add(std::string_view word);
  int64_t count() const { return static_cast<int64_t>(sample_.size()) << zero_bits_; }

 private:
  size_t sample_max_;
  std::unordered_set<uint64_t> sample_;
  int zero_bits_ = 0;
};

// Owns: the words that it has seen, until there are more than kWordsCounted or forgetWords(); then
// a sample of up to `sample_max` of them.
// Threads: thread-compatible.
class ColumnFacts {
 public:
  // `decimal`: what divides a number's decimals, a point or a comma.
  explicit ColumnFacts(size_t sample_max = DistinctWords::kSampleMax, char decimal = '.')
      : decimal_(decimal), estimate_(sample_max) {}

  // Counts the next field, without the spaces around it.
  void add(std::string_view field);

  // Fields with a value that no number says.
  int64_t others() const { return filled() - numbers_; }
  // Whether nearly all fields with a value are numbers.
  bool isNumeric() const;

  // The memory of the words, nearly; without that of the sample.
  size_t wordBytes() const { return word_bytes_; }
  // From now on their number is an estimate.
  void forgetWords();

  // Whether nearly all fields with a value are dates.
  bool areDates() const;

  // Fills the counts of `column`, and decides its use as a feature. Dates are left out, unless
  // `as_words`.
  void judgeFeature(ColumnProfile& column, bool as_words = false) const;
  // Fills the counts of the column to learn. Returns whether its fields are classes, and false for
  // numbers. `wrong` is set where neither can be learnt: why. Among words, "none" is a class; "NA",
  // "N/A" and "null" are, and "none" among numbers, if they are at least half as frequent as the
  // rarest class.
  bool judgeTarget(ColumnProfile& column, std::string& wrong) const;

 private:
  int64_t filled() const { return fields_ - missing_; }
  bool isNearlyAll(int64_t fields) const;
  void addWord(std::string_view word);
  int64_t distinct() const;
  void count(ColumnProfile& column) const;
  void judgeMarkers(ColumnProfile& column) const;
  std::string uselessNumbers(const std::string& name) const;
  std::string uselessWords() const;
  bool hasOtherDecimal(const std::string& field) const;

  char decimal_;
  int64_t fields_ = 0, missing_ = 0, numbers_ = 0, whole_ = 0, dates_ = 0;
  double mean_ = 0, squares_ = 0;  // Welford's sums
  std::optional<double> last_;
  bool counts_rows_ = true;                         // each number is one more than the last
  std::string odd_;                                 // the first word
  std::map<std::string, int64_t> markers_;          // fields that are missing, as words
  std::unordered_map<std::string, int64_t> words_;  // empty where they are many
  size_t word_bytes_ = 0;
  bool many_ = false;
  DistinctWords estimate_;  // where they are many
};

}  // namespace dtf::launcher
