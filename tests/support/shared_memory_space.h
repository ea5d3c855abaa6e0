#pragma once

// The room for shared memory with names, which containers bound to 64 MiB by default.

#include <sys/statvfs.h>

#include <cstdint>
#include <string>

namespace dtf::testing {

// Returns the reason why UCX's shared memory (posix, whose segments are files in /dev/shm) has too
// little room here; empty: it has enough. UCX ends the process if a page is missing.
inline std::string lackOfSharedMemory(const std::string& transports) {
  constexpr uint64_t kNeededMiB = 256;
  if (transports.find("posix") == std::string::npos) return {};
  struct statvfs space {};
  const bool is_there = ::statvfs("/dev/shm", &space) == 0;
  const uint64_t free_mib = is_there ? (uint64_t{space.f_bavail} * space.f_frsize) >> 20 : 0;
  if (free_mib >= kNeededMiB) return {};
  return "/dev/shm has " + std::to_string(free_mib) + " MiB free, and UCX_TLS=" + transports +
         " needs " + std::to_string(kNeededMiB);
}

}  // namespace dtf::testing
