#pragma once

// A user's rules for the names of tensors; weight_names.h applies them.

#include <string>
#include <vector>

namespace dtf::model_files {

// A tensor's whole name, or the beginning of names up to a '.' or '/'. Value type.
struct Rename {
  std::string from;  // "fc.weight", "encoder."
  std::string to;    // "head.weight", "body."; of a beginning it may be empty
};

// Value type.
struct NameRules {
  // Taken off the names; the tensors without it aren't used. Whole parts of a name: "backbone" and
  // "backbone." are the same, and no beginning of "backbone2.weight".
  std::string prefix;
  std::vector<Rename> renames;  // of names without the prefix
};

}  // namespace dtf::model_files
