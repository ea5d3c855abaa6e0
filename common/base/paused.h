#pragma once

namespace dtf {

// The exit code of a task after its job was saved and stopped. The job continues when its tasks are
// started again (EX_TEMPFAIL of sysexits.h). It is no error; the codes of errors are in
// base/error.h.
inline constexpr int kPausedExitCode = 75;

}  // namespace dtf
