#include "common/data/bad_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::data {

namespace {

constexpr int64_t kAllBadMax = 100'000;      // without a good one before them
constexpr size_t kReasonsKeptMax = 100'000;  // of some hundred bytes each
constexpr const char* kRemedy = "raise max_bad_records of data.train or data.eval";

}  // namespace

BadRecords::BadRecords(std::string what, int64_t max, size_t counted)
    : what_(std::move(what)), max_(max), counted_(counted) {
  DTF_CHECK(max >= 0 && !what_.empty());
}

void BadRecords::fail(const std::string& begin) const {
  std::string text = begin + ":";
  for (size_t i = 0; i < std::min(records_.size(), kBadRecordsShownMax); ++i)
    text += "\n  " + records_[i].reason;
  if (records_.size() > kBadRecordsShownMax) text += "\n  and more";
  throw Error(ErrorCode::kBadData, text);
}

std::string BadRecords::remedy(const std::string& max) const {
  return fmt::format("; {} to {}, or mend the {}", kRemedy, max,
                     what_ == "records" ? "rows" : what_);
}

void BadRecords::add(BadRecord record) {
  DTF_CHECK(!record.reason.empty());
  const bool all_are_bad = record.index == count() && count() + 1 >= kAllBadMax;
  if (records_.size() >= kReasonsKeptMax) record.reason = "it can't be read, as many before it";
  records_.push_back(std::move(record));
  if (all_are_bad) fail(fmt::format("none of the first {} {} can be read", count(), what_));
  // The next ones are named, too: a person mends several lines of a file at a time.
  if (count() > max_ && records_.size() > counted_)
    fail(fmt::format("{} {} or more can't be read, and max_bad_records is {}{}", count(), what_,
                     max_, remedy("their number")));
}

void BadRecords::finish(const std::string& source, int64_t good) const {
  const int64_t bad = count();
  if (bad == 0) return;
  if (good == 0) fail(fmt::format("{}: none of {} {} can be read", source, bad, what_));
  if (bad > max_)
    fail(fmt::format("{}: {} of {} {} can't be read, and max_bad_records is {}{}", source, bad,
                     good + bad, what_, max_, remedy(std::to_string(bad))));
}

}  // namespace dtf::data
