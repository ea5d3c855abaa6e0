#pragma once

// Writes one line per event to stderr: time and level, then key=value with the ids first:
// `2026-03-01T10:11:12.345+01:00 info task=worker/3 event=joined ps=2`.
// error: a person must act; warning: degraded, heals by itself; info: once per change of state,
// never per step; debug: off by default. The speed of a job goes to the launcher (notify.h), not
// into the log.
// Further lines of one event are indented by two spaces, and no line contains a control character:
// the name of a file, a peer or a user can't imitate a log line.
// Threads: thread-safe. Lines never interleave.
// Blocks: never on the reader of stderr, except error(), up to kErrorPatience: its lines are a
// process's last. Lines without room are dropped, and counted in `event=log_dropped lines=N` as
// soon as there is room again.

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace dtf::log {

enum class Level { kDebug, kInfo, kWarning, kError };

inline constexpr Duration kErrorPatience = std::chrono::seconds(1);

// Call once at the start of main. `task` ("worker/1") goes into each line; empty for tools.
void init(std::string_view task, Level level);

// For a program at a terminal: no time, no key `event`, and info without its level:
// "dtf-launch: warning: files left out: files=1 first="notes.txt"". Call it once at the start of
// main, before any thread.
void initForTool(std::string_view program);

// Parses "debug|info|warning|error"; returns false for any other text.
bool parseLevel(std::string_view text, Level& level);

bool enabled(Level level);
void write(Level level, std::string_view text);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug))
    write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dtf::log
