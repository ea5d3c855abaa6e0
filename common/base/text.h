#pragma once

// Small text helpers shared by messages.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtf {

// The candidate nearest to `word` by edit distance (insert, delete, replace, swap of neighbours),
// or empty when none is near enough to be a misspelling. For "did you mean".
std::string nearestWord(std::string_view word, std::span<const std::string_view> candidates);

std::vector<std::string> split(std::string_view text, char separator);  // keeps empty parts
std::string join(std::span<const std::string> parts, std::string_view separator);

// Returns text from outside as one harmless line: control characters (an escape sequence, as bytes
// or as UTF-8) become '?', line breaks spaces. Tabs stay.
std::string printable(std::string_view text);

// Applies printable() to each line. All output for people passes through it: print(), the log,
// launcher/output.h. Puts `indent` before every line but the first, unless it is already there, so
// that a line break in foreign text can't start a line that looks like dtf's.
std::string printableLines(std::string_view text, std::string_view indent = "");

// Returns a size for people: "40 B", "30.7 KiB".
std::string bytesText(uint64_t bytes);

// Returns "1 example" or "7 examples"; `one` is the singular, its plural takes an s.
std::string amountText(uint64_t count, std::string_view one);

}  // namespace dtf
