#pragma once

// Named places where a test can hurt a real process: DTF_FAILPOINTS="checkpoint.before_rename=kill"
// in its environment. Compiled in only with the meson option `tests`: a build for
// production has none, and pays nothing.
//
//   DTF_FAILPOINTS = NAME=ACTION[@HIT][;NAME=ACTION[@HIT]]...
//   ACTION: kill (SIGKILL to itself) | term (SIGTERM) | stop (SIGSTOP) | sleep:MS
//           | error (dtf::Error kCannotWrite)
//   HIT: only at that passage of the point, from 1; without it at every one

#include <span>
#include <string_view>

namespace dtf {

// Every name there is; the table is in failpoint.cc.
std::span<const std::string_view> failpointNames();

// Does what the environment asks for this name. `name` must be in the table. Thread-safe.
// Errors: kUsage, at the first passage of any point, when DTF_FAILPOINTS can't be understood or
// names a point that doesn't exist; kCannotWrite when asked to.
void failpoint(std::string_view name);

}  // namespace dtf

#ifdef DTF_FAILPOINTS_COMPILED_IN
#define DTF_FAILPOINT(name) ::dtf::failpoint(name)
#else
#define DTF_FAILPOINT(name) static_cast<void>(0)
#endif
