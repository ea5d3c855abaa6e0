#pragma once

// What the kernel says of a process of this host.

#include <sys/types.h>

#include <filesystem>

#include "common/base/run_lock.h"

namespace dtf::launcher {

// Whether it is stopped by a signal (SIGSTOP, Ctrl-Z) or a debugger: alive, and does nothing. False
// for one that is not there.
bool isSuspended(pid_t pid);

// Whether it is one of another user, which answers that user and root alone. False for root, and
// for one that is not there.
bool isOutOfReach(pid_t pid);

// Sends SIGTERM to the process that `record` means, after a look at it: launch.json may name any
// number, and its folder may lie on a file system of several hosts. It must be a program of dtf on
// this host, of the user that launch.json belongs to, and the process that wrote it.
// Errors: kUnavailable, saying why not, for another one; kPermission.
void endLauncher(const LaunchRecord& record, const std::filesystem::path& folder);

}  // namespace dtf::launcher
