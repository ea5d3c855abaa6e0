#pragma once

// One line per event on stderr, key=value, ids first: `event=gradient_stale task=worker/3
// step=118`. error = a person must act; warning = degraded, heals by itself; info = once per state
// change, never per step; debug = off unless asked for. Rates and sizes are metrics, not log lines.
// Threads: thread-safe. Lines never interleave.
// Blocks: on stderr only.

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace dtf::log {

enum class Level { kDebug, kInfo, kWarning, kError };

// Call once at the start of main. `task` ("worker/1") goes into each line; empty for tools.
void init(std::string_view task, Level level);

// Parses "debug|info|warning|error"; returns false when it is none of them.
bool parseLevel(std::string_view text, Level& level);

bool enabled(Level level);
void write(Level level, std::string_view line);

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
