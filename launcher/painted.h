#pragma once

// Colours of a terminal in messages.

#include <string>
#include <string_view>

namespace dtf::launcher {

// Returns `lines`, which have no control characters (printableLines()), with the severity of each
// coloured: the word `error` red, `warning` yellow. It is the first word of a line or behind the
// place of the message ("job.yaml:4:5: error: ..."); in a task's log line the word behind the time.
std::string painted(std::string_view lines);

}  // namespace dtf::launcher
