#pragma once

// Errors for what the host gives no more of: open files, threads, memory. Each names the limit, its
// value and where it is raised.

#include <exception>
#include <optional>
#include <string>

#include "common/base/error.h"

namespace dtf {

// "this process may have 16 files and connections open: raise that (ulimit -n)"
std::string openFilesLimit();
// The limits of this user, of the host and of the control group, where they are known.
std::string threadsLimit();
// Of the address space, or else of the host's memory.
std::string memoryLimit();

// Whether this process has so little address space (ulimit -v) that malloc() has no arena for each
// thread, which makes all of them slow.
bool addressSpaceIsSmall();

// errnoText(), and the limit where the number says that the host gives no more of something:
// "Too many open files (24): this process may have 16 files ...".
std::string shortageText(int errno_value);

// The error for an exception of the standard library by which the host reports that something ran
// out, or that a path can't be looked up: kUnavailable, kPermission, kBadData. nullopt: it means
// something else.
std::optional<Error> hostError(const std::exception& exception);

// From now on the process ends by name if such an exception reaches no handler, as in a destructor
// or a thread of a library: with one line on stderr and the exit code of kUnavailable. Any other
// exception without a handler aborts as before. Threads: to be called while there is one.
void nameUncaughtShortages();

// Whether this process can open no more files. Calls that hide the reason of their failure, such as
// getaddrinfo(), fail for that.
bool filesRanOut();

}  // namespace dtf
