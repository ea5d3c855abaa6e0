#pragma once

// What makes a file unreadable as YAML, in the words of someone who edits it, not of a parser.

#include <string>
#include <string_view>

#include "common/yaml/report.h"

namespace dtf::yaml {

inline constexpr std::string_view kKeyIsNoWord = "a key must be a word, not a list or a map";

// Reports control characters and tabs in the indentation, which yaml-cpp misreads or explains
// badly. False: `text` is not worth parsing.
bool checkCharacters(std::string_view text, int source, Report& report);

// yaml-cpp's message in our words.
std::string explainSyntax(const std::string& library_message);

// Reports `message` at `place`; or, when the cause may be a bracket that was left open and there is
// one, that.
void reportSyntax(std::string_view text, const Place& place, const std::string& message,
                  Report& report);

}  // namespace dtf::yaml
