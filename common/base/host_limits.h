#pragma once

// Errors for exhausted resources of the host: open files, threads, memory. Each names the limit,
// its value and the setting that raises it.

#include <exception>
#include <optional>
#include <string>

#include "common/base/error.h"

namespace dtf {

// Returns "this process may have 16 files and connections open: raise that (ulimit -n)".
std::string openFilesLimit();
// Returns the thread limits of this user, of the host and of the control group, as far as known.
std::string threadsLimit();
// Returns the limit of the address space, or else the host's memory.
std::string memoryLimit();

// Returns whether the address space is so small (ulimit -v) that malloc() has no arena for each
// thread, which slows down all threads.
bool addressSpaceIsSmall();

// Returns errnoText(), plus the limit if the number means that a resource of the host is exhausted:
// "Too many open files (24): this process may have 16 files ...".
std::string shortageText(int errno_value);

// Converts exceptions of the standard library for exhausted resources and for paths that can't be
// looked up: kUnavailable, kPermission, kBadData. The operation that failed is named as the
// exception names it. nullopt: any other exception.
std::optional<Error> hostError(const std::exception& exception);

// From now on, such an exception without a handler (in a destructor, or in a library's thread) ends
// the process with one line on stderr and the exit code of kUnavailable. Other exceptions without a
// handler abort as before.
// Threads: call it while the process has one thread.
void nameUncaughtShortages();

// Returns whether this process can open no more files. This explains failures of calls that hide
// their reason, such as getaddrinfo().
bool filesRanOut();

}  // namespace dtf
