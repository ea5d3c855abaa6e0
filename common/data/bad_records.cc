#include "common/data/bad_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"

namespace dtf::data {

namespace {

constexpr int64_t kAllBadMax = 100'000;      // without a good one before them
constexpr size_t kReasonsKeptMax = 100'000;  // of some hundred bytes each

}  // namespace

BadRecords::BadRecords(std::string what, int64_t max) : what_(std::move(what)), max_(max) {
  DTF_CHECK(max >= 0 && !what_.empty());
}

void BadRecords::fail(const std::string& begin) const {
  std::string text = begin + ":";
  for (size_t i = 0; i < std::min(records_.size(), kBadRecordsShownMax); ++i)
    text += "\n  " + records_[i].reason;
  if (records_.size() > kBadRecordsShownMax) text += "\n  and more";
  throw Error(ErrorCode::kBadData, text);
}

void BadRecords::add(BadRecord record) {
  DTF_CHECK(!record.reason.empty());
  const bool all_are_bad = record.index == count() && count() + 1 >= kAllBadMax;
  if (records_.size() >= kReasonsKeptMax) record.reason = "it can't be read, as many before it";
  records_.push_back(std::move(record));
  if (all_are_bad) fail(fmt::format("none of the first {} {} can be read", count(), what_));
  // The next ones are named, too: a person mends several lines of a file at a time.
  if (count() > max_ && records_.size() > kBadRecordsShownMax)
    fail(fmt::format("{} {} or more can't be read, and max_bad_records is {}", count(), what_,
                     max_));
}

void BadRecords::finish(const std::string& source, int64_t good) const {
  const int64_t bad = count();
  if (bad == 0) return;
  if (good == 0) fail(fmt::format("{}: none of {} {} can be read", source, bad, what_));
  if (bad > max_)
    fail(
        fmt::format("{}: {} of {} {} can't be read, and max_bad_records is {}: mend them, or let "
                    "it be so many",
                    source, bad, good + bad, what_, max_));
  if (max_ == kAllMayBeBad) return;
  for (size_t i = 0; i < std::min(records_.size(), kBadRecordsShownMax); ++i)
    log::warning("event=bad_record reason=\"{}\"", records_[i].reason);
  log::warning("event=bad_records_left_out records={} of={} files=\"{}\"", bad, good + bad, source);
}

}  // namespace dtf::data
