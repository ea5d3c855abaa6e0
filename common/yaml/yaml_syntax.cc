#include "common/yaml/yaml_syntax.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "common/yaml/key_table.h"

namespace dtf::yaml {

namespace {

struct Bracket {
  char character = 0;
  Place place;
};

// Returns the innermost bracket that is open at the end of `text`. Only for messages, so a rough
// reading of quotes is enough: a quote opens a text where a value may start.
std::optional<Bracket> unclosedBracket(std::string_view text, int source) {
  std::vector<Bracket> open;
  Place here{source, 1, 0};
  char quote = 0;
  char before = ' ';
  bool comment = false;
  for (const char c : text) {
    ++here.column;
    const bool value_may_start = std::string_view(" \n[{,").find(before) != std::string_view::npos;
    if (c == '\n') {
      here = {source, here.line + 1, 0};
      comment = false;
    } else if (comment) {
      continue;
    } else if (quote != 0) {
      if (c == quote && before != '\\') quote = 0;
    } else if ((c == '"' || c == '\'') && value_may_start) {
      quote = c;
    } else if (c == '#' && (before == ' ' || before == '\n')) {
      comment = true;
    } else if (c == '[' || c == '{') {
      open.push_back({c, here});
    } else if ((c == ']' || c == '}') && !open.empty()) {
      open.pop_back();
    }
    before = c;
  }
  return open.empty() ? std::nullopt : std::optional(open.back());
}

struct MissingSpace {
  std::string_view key;
  Place place;
};

// yaml-cpp reads "batch_size:50" as the first line of a longer text, and reports the next line.
std::optional<MissingSpace> missingSpaceBefore(Tables tables, std::string_view text,
                                               const Place& place) {
  std::optional<MissingSpace> nearest;
  for (int line = 1; line <= place.line && !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view source_line = text.substr(0, end);
    const size_t begin = source_line.find_first_not_of(" -");
    if (begin != std::string_view::npos && line + 1 >= place.line) {
      const std::string_view key = keyWithoutSpace(tables, source_line.substr(begin));
      if (!key.empty()) nearest = {key, {place.source, line, static_cast<int>(begin) + 1}};
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return nearest;
}

}  // namespace

bool checkCharacters(std::string_view text, int source, Report& report) {
  int line = 1;
  int column = 1;
  bool indentation = true;
  bool good = true;
  for (size_t i = 0; i < text.size(); ++i, ++column) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
      report.error({source}, "line " + std::to_string(line) +
                                 " holds a control character: this is not a text file in UTF-8");
      return false;
    }
    if (c == '\t' && indentation) {
      report.error({source, line, column}, "a tab in the indentation: YAML indents with spaces");
      good = false;
      indentation = false;
    }
    if (c == '\n') {
      ++line;
      column = 0;
      indentation = true;
    } else if (c != ' ') {
      indentation = false;
    }
  }
  return good;
}

SyntaxMistake explainSyntax(const std::string& library_message) {
  struct Words {
    std::string_view theirs, ours;
    bool may_be_open_bracket = false;
  };
  static constexpr Words kWords[] = {
      {"end of map flow not found", "expected ',' or '}'", true},
      {"end of sequence flow not found", "expected ',' or ']'", true},
      {"illegal map value", "a ':' where none may be: quote the text, or start a new line", true},
      {"illegal block entry", "a list element ('- ') where none may be"},
      {"illegal flow end", "this closes a bracket that was never opened"},
      {"illegal EOF in scalar", "the quote that opens this text is never closed"},
      {"end of map not found", "the indentation fits neither this map nor the one around it"},
      {"end of sequence not found", "the indentation fits neither this list nor what is around it"},
      {"the referenced anchor is not defined",
       "this alias (*name) has no anchor (&name) before it"},
  };
  for (const Words& words : kWords)
    if (library_message == words.theirs)
      return {std::string(words.ours), words.may_be_open_bracket};
  return {"not YAML: " + library_message};
}

void reportSyntax(std::string_view text, const Place& place, const SyntaxMistake& mistake,
                  Report& report) {
  if (const std::optional<MissingSpace> missing = missingSpaceBefore(report.tables(), text, place))
    return report.error(missing->place,
                        "a space is missing after '" + std::string(missing->key) + ":'");
  // yaml-cpp reports the token after an open bracket; the bracket itself is the mistake.
  const std::optional<Bracket> bracket =
      mistake.may_be_open_bracket ? unclosedBracket(text, place.source) : std::nullopt;
  if (bracket)
    report.error(bracket->place, std::string("this '") + bracket->character + "' is never closed");
  else
    report.error(place, mistake.message);
}

}  // namespace dtf::yaml
