#pragma once

// The place of a value in a file, for messages made after reading (a port in use, a shape that
// doesn't fit).

#include <string>

namespace dtf::yaml {

// Value type.
struct Mark {
  std::string file;  // or a part of the command line: "--set train.steps=5"; empty: a default
  int line = 0;      // from 1; 0: the command line
  int column = 0;    // from 1
  // "local.yaml:9:14", "--set train.steps=5"; empty for a default.
  std::string str() const {
    return line == 0 ? file : file + ":" + std::to_string(line) + ":" + std::to_string(column);
  }
  bool operator==(const Mark&) const = default;
};

}  // namespace dtf::yaml
