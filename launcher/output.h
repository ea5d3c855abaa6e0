#pragma once

// What a verb prints on stdout.

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace dtf::launcher {

// Errors of each: kCannotWrite when stdout does not take it (a full disk): a result that nobody gets
// is no success.
void print(const std::string& text);
// One line: "schema", "event" and "time", then `fields`.
std::string eventLine(const char* event, const nlohmann::ordered_json& fields);
void printEvent(const char* event, const nlohmann::ordered_json& fields);

// The last words of a process: a reader that has stopped (Ctrl-S, a full pipe) must not keep it. It
// is given up when nothing is taken for `patience`. False: `fd` did not take all of `text`.
bool printBounded(int fd, std::string_view text, Duration patience = std::chrono::seconds(10));

}  // namespace dtf::launcher
