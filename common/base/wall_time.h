#pragma once

// The time of day as a text, for people and programs.

#include <chrono>
#include <optional>
#include <string>

namespace dtf {

// "2026-03-01T10:11:12.345+01:00": ISO 8601 in this host's zone, as in the log lines of the tasks.
std::string wallTimeText(
    std::chrono::system_clock::time_point time = std::chrono::system_clock::now());

// The reverse, of any zone. Returns nullopt for another text.
std::optional<std::chrono::system_clock::time_point> wallTimeOf(const std::string& text);

}  // namespace dtf
