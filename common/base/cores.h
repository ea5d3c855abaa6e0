#pragma once

// The number of threads this process can keep busy.

#include <string_view>

namespace dtf {

// Returns the cores in the affinity of the process, or the quota of its control groups (version 2)
// if that is less. At least 1.
int availableCores();

// Returns the cores that a cpu.max of control groups v2 allows ("QUOTA PERIOD" in microseconds),
// rounded down: a process that uses more is stopped for the rest of each period. Returns `most` if
// the quota is "max", larger, or unreadable. At least 1.
int coresOfQuota(std::string_view cpu_max, int most);

}  // namespace dtf
