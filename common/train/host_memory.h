#pragma once

// How much memory this host can give, to refuse a job that can never fit before it takes the host
// down.

#include <cstdint>
#include <string_view>

namespace dtf::train {

// In bytes; 0: not known, which refuses nothing.
struct HostMemory {
  uint64_t total = 0;      // with swap
  uint64_t available = 0;  // without disturbing anyone, as the kernel estimates it
};

// The text of /proc/meminfo. Lines that are missing or unreadable leave 0.
HostMemory parseMemInfo(std::string_view text);

// Of this host, or of the container (cgroup v2) that limits this process to less.
// Blocks: on /proc and /sys, shortly.
HostMemory hostMemory();

}  // namespace dtf::train
