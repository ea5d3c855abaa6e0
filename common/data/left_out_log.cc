#include "common/data/left_out_log.h"

#include <fmt/format.h>

namespace dtf::data {

LeftOut LeftOutLog::add(const Dataset& dataset) {
  LeftOut added;
  std::set<int64_t>& known = known_[dataset.features().source()];
  for (const BadRecord& record : dataset.leftOut()) {
    if (!known.insert(record.index).second) continue;
    if (++added.records <= kBadRecordsShownMax) added.reasons.push_back(record.reason);
  }
  if (added.records == 0 || !log::enabled(level_)) return added;
  for (const std::string& reason : added.reasons)
    log::write(level_, fmt::format("event=bad_record reason=\"{}\"", reason));
  log::write(level_,
             fmt::format("event=bad_records_left_out records={} of={} files=\"{}\"", added.records,
                         dataset.recordsRead(), dataset.features().source()));
  return added;
}

}  // namespace dtf::data
