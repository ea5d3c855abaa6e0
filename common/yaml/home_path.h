#pragma once

// Expansion of `~/x` in a file or behind `--run-dir=`, where no shell expands it. Unexpanded, it
// would become a folder named '~'.

#include <string>

namespace dtf::yaml {

// Replaces a leading `~/` of `path` by the value of HOME. Returns an empty string, or the reason
// why it can't: `~name`, or HOME is not set; `path` is then unchanged. A folder that really is
// named '~' is written ./~
std::string expandHome(std::string& path);

}  // namespace dtf::yaml
