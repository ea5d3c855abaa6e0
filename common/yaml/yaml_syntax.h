#pragma once

// Syntax errors of YAML, in the words of a person who edits the file, not of a parser.

#include <string>
#include <string_view>

#include "common/yaml/report.h"

namespace dtf::yaml {

struct SyntaxMistake {
  std::string message;
  bool may_be_open_bracket = false;  // the cause may be an earlier bracket left open
};

// Reports control characters, and tabs in the indentation: yaml-cpp misreads them or explains them
// badly. Returns false if `text` is not worth parsing.
bool checkCharacters(std::string_view text, int source, Report& report);

// Translates yaml-cpp's message, the only information that yaml-cpp gives.
SyntaxMistake explainSyntax(const std::string& library_message);

// Reports `mistake` at `place`, or, if the cause may be a bracket left open and there is one, that
// bracket.
void reportSyntax(std::string_view text, const Place& place, const SyntaxMistake& mistake,
                  Report& report);

}  // namespace dtf::yaml
