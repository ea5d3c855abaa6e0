#pragma once

// The unreadable records of one data set. Up to a limit they are kept with their reasons; beyond it
// they end the reading with an error.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace dtf::data {

// A record that is no example. Value type.
struct BadRecord {
  int64_t index = 0;   // among all records, from 0
  std::string reason;  // with its place: "t.csv:3:5: 'x' in column 'a' is no number"
};

inline constexpr size_t kBadRecordsShownMax = 10;  // in an error, and in the log

// The limit of a caller that answers for each record itself.
inline constexpr int64_t kAllMayBeBad = std::numeric_limits<int64_t>::max();

// Owns: the records' reasons.
// Threads: thread-compatible.
class BadRecords {
 public:
  // `what`: "records" or "images". `max`: how many may be left out. `counted`: reading goes on
  // until so many are found, though they are more than `max`; the error then gives their number.
  BadRecords(std::string what, int64_t max, size_t counted = kBadRecordsShownMax);

  // Errors: kBadData with the first reasons, when there are more than `max` and `counted`.
  void add(BadRecord record);

  // Call it at the end of the data. `source`: the files, for messages. `good`: how many records
  // were read.
  // Errors: kBadData with the first reasons, when there are more than `max`, or no good one.
  void finish(const std::string& source, int64_t good) const;

  int64_t count() const { return static_cast<int64_t>(records_.size()); }
  std::vector<BadRecord> take() { return std::move(records_); }

 private:
  [[noreturn]] void fail(const std::string& begin) const;
  std::string remedy(const std::string& max) const;

  const std::string what_;
  const int64_t max_;
  const size_t counted_;
  std::vector<BadRecord> records_;
};

}  // namespace dtf::data
