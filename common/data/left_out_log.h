#pragma once

// The log of the records that data sets leave out.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/data/dataset.h"

namespace dtf::data {

// Value type.
struct LeftOut {
  size_t records = 0;
  std::vector<std::string> reasons;  // of the first kBadRecordsShownMax
};

// Logs each record once: data sets of one file, such as the two sides of a split, have the same
// ones.
// Owns: the places of the records that were logged.
// Threads: thread-compatible.
class LeftOutLog {
 public:
  explicit LeftOutLog(log::Level level) : level_(level) {}

  // Logs and returns the records of `dataset` that are new here.
  LeftOut add(const Dataset& dataset);

 private:
  const log::Level level_;
  std::map<std::string, std::set<int64_t>> known_;  // the records of each source
};

}  // namespace dtf::data
