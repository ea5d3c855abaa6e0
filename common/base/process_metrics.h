#pragma once

// The kernel's metrics of this process, under the names that Prometheus' own libraries use.

#include <vector>

#include "common/base/metrics.h"

namespace dtf {

// Returns CPU seconds, memory, descriptors, threads and the start time; omits values that can't be
// read.
// Threads: thread-safe.
// Blocks: on /proc, shortly.
std::vector<Metric> processMetrics();

}  // namespace dtf
