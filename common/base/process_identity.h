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
  std::string boot{};       // of the host's kernel, since it was started
  int64_t start_ticks = 0;  // when the process began, in ticks since the boot; 0: not known
  bool operator==(const ProcessIdentity&) const = default;
};

// Returns the identity of a process of this host; start_ticks is 0 if there is no such process.
// Threads: thread-safe.
ProcessIdentity identityOf(pid_t pid);

// Returns the name of the host that `identity` is of, where that is another one than this; empty:
// it is this one, or not known.
// Threads: thread-safe.
std::string otherHost(const ProcessIdentity& identity);

// Returns whether there is a process `pid` here that began at `start_ticks`; 0: whichever has the
// number.
bool isSameProcess(pid_t pid, int64_t start_ticks);

}  // namespace dtf
