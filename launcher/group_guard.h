#pragma once

// What the parent-death signal can't do: it ends a task when the launcher is killed, not what the
// task itself has started (a wrapper script's child). So a second, tiny process outlives the
// launcher, and kills what is left.

#include <sys/types.h>

#include "common/base/file.h"

namespace dtf::launcher {

// Owns: the guard process and the pipe to it; the end of that pipe is how it learns of the
// launcher's death.
// Threads: thread-compatible.
// Blocks: the destructor, until the guard has gone (at once).
// Errors: kUnavailable when the host can't start a process.
class GroupGuard {
 public:
  // Before any descriptor is opened that must not live on: the guard closes what it inherits, but a
  // moment later.
  GroupGuard();
  ~GroupGuard();
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

  void add(pid_t group);
  // Call while the group's leader is not yet reaped, so that its number can't belong to anyone
  // else.
  void remove(pid_t group);

 private:
  void send(pid_t record);

  Fd pipe_;
  pid_t pid_ = -1;
};

}  // namespace dtf::launcher
