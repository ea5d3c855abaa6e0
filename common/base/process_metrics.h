#pragma once

// What the kernel says of this process, under the names that Prometheus' own libraries have for it.

#include <vector>

#include "common/base/metrics.h"

namespace dtf {

// CPU seconds, memory, descriptors, threads, the time of the start. What can't be read is left out.
// Any thread.
// Blocks: on /proc, shortly.
std::vector<Metric> processMetrics();

}  // namespace dtf
