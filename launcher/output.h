#pragma once

// What a verb prints on stdout.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace dtf::launcher {

// Errors of each: kCannotWrite when stdout does not take it (a full disk): a result that nobody gets
// is no success.
void print(const std::string& text);
// One line: "schema", "event" and "time", then `fields`.
void printEvent(const char* event, const nlohmann::ordered_json& fields);

}  // namespace dtf::launcher
