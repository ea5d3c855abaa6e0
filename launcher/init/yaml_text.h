#pragma once

// Values of a YAML file from foreign text: names of columns, words of a table, paths.

#include <string>
#include <string_view>
#include <vector>

namespace dtf::launcher {

// Whether a job's file can hold `text` as a value: not empty, UTF-8, no control characters, and of
// at most 4096 bytes.
bool isWritable(std::string_view text);

// `text` as one scalar that reads as a text: plain where YAML takes it as a word, else between
// double quotes. It is isWritable().
std::string yamlText(std::string_view text);

// "0.25", "1e+06": the fewest digits that read as the same float. It is finite as one.
std::string yamlNumber(double number);

// "key: [a, b, c]", broken into lines of at most 100 columns with `indent` spaces before each. The
// items are scalars of YAML.
std::string yamlList(std::string_view key, const std::vector<std::string>& items, size_t indent);

// The same with yamlText() of each word.
std::string yamlWords(std::string_view key, const std::vector<std::string>& words, size_t indent);

}  // namespace dtf::launcher
