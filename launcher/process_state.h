#pragma once

// What the kernel says of a process of this host.

#include <sys/types.h>

namespace dtf::launcher {

// Whether it is stopped by a signal (SIGSTOP, Ctrl-Z) or a debugger: alive, and does nothing. False
// for one that is not there.
bool isSuspended(pid_t pid);

// Whether there is such a process, of whichever user.
bool isAlive(pid_t pid);

// Whether it is one of another user, which answers that user and root alone. False for root, and for one that is not
// there.
bool isOutOfReach(pid_t pid);

}  // namespace dtf::launcher
