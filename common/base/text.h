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

// `text` of somebody else as one harmless line: control characters (an escape sequence, as bytes or
// as UTF-8) become '?', line breaks spaces. Tabs stay.
std::string printable(std::string_view text);

// Text of several lines, each as printable(). All output for people passes through it: print(), the
// log, launcher/output.h. `indent` is put before every line but the first, unless it is there: a
// line break in a foreign name then starts no line that looks like one of dtf.
std::string printableLines(std::string_view text, std::string_view indent = "");

// "40 B", "30.7 KiB": what a person reads sizes in.
std::string bytesText(uint64_t bytes);

// "1 example", "7 examples": `one` takes an s.
std::string amountText(uint64_t count, std::string_view one);

}  // namespace dtf
