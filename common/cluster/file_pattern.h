#pragma once

// Patterns and folders in a list of files.

#include <filesystem>
#include <string>
#include <vector>

namespace dtf::cluster {

// Returns the files that `path` stands for, in order of name: the files of a folder, or the files
// that match a pattern (*, ?, [a-z]) in its last name. Leaves out names that begin with '.' or '_',
// which programs give to files that are no data. A path that stands for no file is returned itself,
// so that its reader reports it. `wrong`: the reason why the folder can't be listed; else empty.
// Blocks: on the disk, shortly.
std::vector<std::filesystem::path> filesOf(const std::filesystem::path& path, std::string& wrong);

}  // namespace dtf::cluster
