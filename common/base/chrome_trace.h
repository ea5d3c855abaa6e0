#pragma once

// What timelines have in common as Chrome trace JSON, for ui.perfetto.dev and chrome://tracing.

#include <cstdint>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/json.h"

namespace dtf::trace {

// Chrome's unit of time.
inline double microseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e3;
}

// Tasks in the order of every list: ps first. A pid that is 0 is the kernel's.
inline int pidOf(TaskId task) {
  constexpr int kFirstPs = 1;
  constexpr int kFirstWorker = 100'001;
  return static_cast<int>(task.index) + (task.job == JobKind::kPs ? kFirstPs : kFirstWorker);
}

// An event that names something, or says where it is shown.
inline Json metadata(const char* what, int pid, const char* key, const Json& value) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", 0}, {"args", {{key, value}}}};
}

// One moment by both clocks: what spans of hosts that share no CLOCK_MONOTONIC are compared by.
inline Json clockAnchor(TimePoint monotonic, int64_t unix_us) {
  return {{"monotonic_us", microseconds(monotonic.time_since_epoch())}, {"unix_us", unix_us}};
}

}  // namespace dtf::trace
