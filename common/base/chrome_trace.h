#pragma once

// Parts that all timelines share, as Chrome trace JSON for ui.perfetto.dev and chrome://tracing.

#include <cstdint>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/json.h"

namespace dtf::trace {

// Chrome's unit of time.
inline double microseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e3;
}

// The pid of a task in a timeline. Orders tasks as all lists do, ps first; pid 0 is the kernel.
inline int pidOf(TaskId task) {
  constexpr int kFirstPs = 1;
  constexpr int kFirstWorker = 100'001;
  return static_cast<int>(task.index) + (task.job == JobKind::kPs ? kFirstPs : kFirstWorker);
}

// An event that names a process or thread, or sets its place.
inline Json metadata(const char* what, int pid, const char* key, const Json& value) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", 0}, {"args", {{key, value}}}};
}

// One moment on both clocks. It aligns spans of hosts, which share no CLOCK_MONOTONIC.
inline Json clockAnchor(TimePoint monotonic, int64_t unix_us) {
  return {{"monotonic_us", microseconds(monotonic.time_since_epoch())}, {"unix_us", unix_us}};
}

}  // namespace dtf::trace
