#pragma once

// How much memory this host can give, to refuse a job that can never fit before it takes the host
// down.

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace dtf {

// In bytes; 0: not known, which refuses nothing.
struct HostMemory {
  uint64_t total = 0;      // with swap
  uint64_t available = 0;  // without disturbing anyone, as the kernel estimates it
};

// The text of /proc/meminfo. Lines that are missing or unreadable leave 0.
HostMemory parseMemInfo(std::string_view text);

// The lowest limit, the number in the file `name` ("memory.max"), of the group that
// `proc_self_cgroup`, the text of /proc/self/cgroup, names (cgroup v2) and of the groups around it,
// below the file system's `root`. 0: none has one.
uint64_t cgroupLimit(std::string_view proc_self_cgroup, const std::filesystem::path& root,
                     std::string_view name = "memory.max");
// The same of this process.
uint64_t ownCgroupLimit(std::string_view name);

// Of this host, or of the control group (a container, a unit of systemd) that limits this process
// to less.
// Blocks: on /proc and /sys, shortly.
HostMemory hostMemory();

}  // namespace dtf
