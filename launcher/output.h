#pragma once

// What a verb prints on stdout for programs, and the last words of a process; for people: print.h.

#include <chrono>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/json.h"

namespace dtf::launcher {

// One line: "schema", "event" and "time", then `fields`.
std::string eventLine(const char* event, const Json& fields);
// Errors: those of print().
void printEvent(const char* event, const Json& fields);

// The last words of a process, as printableLines(), on a terminal with colours (painted.h): a
// reader that has stopped (Ctrl-S, a full pipe) must not keep it. It is given up when nothing is
// taken for `patience`. False: `fd` did not take all of `text`.
bool printBounded(int fd, std::string_view text, Duration patience = std::chrono::seconds(10));

}  // namespace dtf::launcher
