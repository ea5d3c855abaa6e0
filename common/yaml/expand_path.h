#pragma once

// Expansion of `~/x` and `${NAME}` in a path of a file or behind `--run-dir=`, where no shell
// expands them. Unexpanded, they would become folders with these names.

#include <string>

namespace dtf::yaml {

// Replaces a leading `~/` of `path` by the value of HOME, and each `${NAME}` by that of the
// environment variable. Returns an empty string, or the reason why it can't: `~name`, or a variable
// that is not set; `path` is then unchanged. A folder that really is named '~' is written ./~
std::string expandPath(std::string& path);

}  // namespace dtf::yaml
