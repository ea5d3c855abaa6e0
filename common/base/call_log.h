#pragma once

// What the tests have reached: each RPC method by its outcome, each error that ended a program, as
// lines appended to the file that DTF_CALL_LOG names in the environment. tests/calls.py compares
// them with all that there are. Compiled in where failpoints are; a program that is installed has
// none of it.

#include <string_view>

namespace dtf {

// True when DTF_CALL_LOG names a file. Thread-safe.
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
