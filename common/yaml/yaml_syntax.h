#pragma once

// What makes a file unreadable as YAML, in the words of someone who edits it, not of a parser.

#include <string>
#include <string_view>

#include "common/yaml/report.h"

namespace dtf::yaml {

struct SyntaxMistake {
  std::string message;
  bool may_be_open_bracket = false;  // the cause may be a bracket before it that was left open
};

// Reports control characters and tabs in the indentation, which yaml-cpp misreads or explains
// badly. False: `text` is not worth parsing.
bool checkCharacters(std::string_view text, int source, Report& report);

// yaml-cpp's message in our words; a message is all that yaml-cpp gives.
SyntaxMistake explainSyntax(const std::string& library_message);

// Reports `mistake` at `place`; or, when the cause may be a bracket that was left open and there is
// one, that.
void reportSyntax(std::string_view text, const Place& place, const SyntaxMistake& mistake,
                  Report& report);

}  // namespace dtf::yaml
