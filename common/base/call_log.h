#pragma once

// A log of the code paths that tests reach: each RPC method with its outcome, and each error that
// ended a program. Lines are appended to the file named by DTF_CALL_LOG; tests/calls.py compares
// them with the list of all paths. Compiled in together with failpoints, never in installed
// programs.

#include <string_view>

namespace dtf {

// Returns whether DTF_CALL_LOG names a file. Thread-safe.
bool callLogWanted();

// Appends `line`, once per process. Thread-safe. Blocks: on the file.
// Errors: none; a file that can't be written ends the process, because its test would prove
// nothing.
void logCall(std::string_view line);

}  // namespace dtf

#ifdef DTF_FAILPOINTS_COMPILED_IN
#define DTF_LOG_CALL(line) \
  static_cast<void>(::dtf::callLogWanted() ? ::dtf::logCall(line) : static_cast<void>(0))
#else
#define DTF_LOG_CALL(line) static_cast<void>(0)
#endif
