#pragma once

// The lines of a libsvm file, one at a time, each as a label and numbers with their places.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/byte_source.h"

namespace dtf::data {

// A number of a record. Value type.
struct LibsvmValue {
  int64_t index = 0;  // as in the file
  float value = 0;
  size_t column = 0;  // of the pair in its line, from 1
};

// Owns: the file and the current line.
// Threads: thread-compatible.
// Blocks: on the disk.
// Errors: see ByteSource; kBadData naming file and line for bytes that are no text, a line that is
// too long, and "qid:".
class LibsvmLines {
 public:
  explicit LibsvmLines(const std::filesystem::path& path);

  // Reads the next line that isn't empty or a comment; returns false at the end of the file.
  bool next();

  // Divides the line. Returns its fault with the place, or nothing. Indices ascend from `first` on
  // (0 or 1), and their values are finite.
  // Errors: kBadData for "qid:".
  std::string parse(int64_t first);

  // The next three are of the line that parse() divided.
  std::string_view label() const { return label_; }  // empty: there is none
  const std::vector<LibsvmValue>& values() const { return values_; }
  std::string where(size_t column = 0) const;  // "a.svm:3:7"; 0: of the label

 private:
  bool readLine();
  std::string parsePair(std::string_view pair, size_t column, int64_t first);
  [[noreturn]] void fail(const std::string& why) const;

  const std::string path_;
  ByteSource source_;
  std::array<uint8_t, 65536> chunk_;
  size_t at_ = 0, held_ = 0;
  int64_t line_ = 0;
  std::string text_;  // without its comment
  std::string_view label_;
  size_t label_column_ = 1;
  std::vector<LibsvmValue> values_;
};

}  // namespace dtf::data
