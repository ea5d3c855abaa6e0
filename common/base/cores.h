#pragma once

// How many threads this process can keep busy.

#include <string_view>

namespace dtf {

// The cores that the process may run on (its affinity), or what the quotas of its control groups
// (of version 2) are worth when that is less. At least 1.
int availableCores();

// Of a cpu.max of control groups v2, "QUOTA PERIOD" in microseconds, rounded down, since a process
// that takes more is stopped for the rest of each period; `most` when it is "max", larger, or not
// understood. At least 1.
int coresOfQuota(std::string_view cpu_max, int most);

}  // namespace dtf
