#pragma once

namespace dtf {

// The exit code of a task whose job was saved and left, to go on when its tasks are started again
// (EX_TEMPFAIL of sysexits.h). No error: base/error.h has the codes of those.
inline constexpr int kPausedExitCode = 75;

}  // namespace dtf
