#pragma once

// The memory of this host, to reject a job that can't fit before it exhausts the host.

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace dtf {

// Bytes; 0 if not known, which rejects nothing.
struct HostMemory {
  uint64_t total = 0;      // includes swap
  uint64_t available = 0;  // without swapping, as the kernel estimates it
};

// Parses the text of /proc/meminfo. Missing or unreadable lines leave 0.
HostMemory parseMemInfo(std::string_view text);

// Returns the lowest limit of a control group (version 2) and its parents, 0 if none has a limit.
// The group is named by `proc_self_cgroup`, the text of /proc/self/cgroup; `root` is the file
// system of the groups; `name` is the file that holds the limit.
uint64_t cgroupLimit(std::string_view proc_self_cgroup, const std::filesystem::path& root,
                     std::string_view name = "memory.max");
// The same for this process.
uint64_t ownCgroupLimit(std::string_view name);

// Returns the memory of this host, or the limit of this process's control group (a container, a
// unit of systemd) if that is less.
// Blocks: on /proc and /sys, shortly.
HostMemory hostMemory();

}  // namespace dtf
