#pragma once

// Named places where a test can harm a real process: DTF_FAILPOINTS="checkpoint.before_rename=kill"
// in its environment. Compiled in only with the Meson option `tests`; a production build has none,
// at no cost.
//
//   DTF_FAILPOINTS = NAME=ACTION[@HIT][;NAME=ACTION[@HIT]]...
//   ACTION: kill (SIGKILL to itself) | term (SIGTERM) | stop (SIGSTOP) | sleep:MS
//           | error (dtf::Error kCannotWrite)
//   HIT: the passage that triggers, from 1; without it, every passage

#include <span>
#include <string_view>

namespace dtf {

// Returns every name; the table is in failpoint.cc.
std::span<const std::string_view> failpointNames();

// Runs the action that the environment sets for this name. `name` must be in the table.
// Thread-safe.
// Errors: kUsage, at the first passage of any point, if DTF_FAILPOINTS is malformed or names an
// unknown point; kCannotWrite for the action `error`.
void failpoint(std::string_view name);

}  // namespace dtf

#ifdef DTF_FAILPOINTS_COMPILED_IN
#define DTF_FAILPOINT(name) ::dtf::failpoint(name)
#else
#define DTF_FAILPOINT(name) static_cast<void>(0)
#endif
