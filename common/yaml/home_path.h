#pragma once

// `~/x` in a file or behind `--run-dir=`, where no shell expands it: taken as it stands, it would
// become a folder named '~'.

#include <string>

namespace dtf::yaml {

// Replaces a leading `~/` of `path` by the value of HOME. Returns an empty string, or what is wrong
// with `path`, which then stays as it is: `~name`, or a HOME that is not set. A folder that really
// is named '~' is written ./~
std::string expandHome(std::string& path);

}  // namespace dtf::yaml
