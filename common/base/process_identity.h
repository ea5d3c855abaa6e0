#pragma once

// The identity of a process. The kernel reuses pids, and a pid of one host means nothing on
// another.

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace dtf {

// Value type.
struct ProcessIdentity {
  std::string host{};       // its name
  std::string boot{};       // the id of the kernel's boot
  int64_t start_ticks = 0;  // start of the process in ticks since the boot; 0 if not known
  bool operator==(const ProcessIdentity&) const = default;
};

// Returns the identity of a process of this host; start_ticks is 0 if there is no such process.
// Threads: thread-safe.
ProcessIdentity identityOf(pid_t pid);

// Returns the name of the host of `identity` if it is another host; empty if it is this host or not
// known.
// Threads: thread-safe.
std::string otherHost(const ProcessIdentity& identity);

// Returns whether process `pid` of this host started at `start_ticks`; with 0, whether any process
// has that pid.
bool isSameProcess(pid_t pid, int64_t start_ticks);

}  // namespace dtf
