#pragma once

// Local copies of a job's files. A launcher on another host has sent them to this host, where the
// original paths may not exist. DTF_SENT_FILES then names a folder with each file at its absolute
// path (launcher/ssh/sent_files_folder.h). Messages still use the original name, and relative paths
// in the file still start at its original folder.

#include <filesystem>

namespace dtf::yaml {

// Returns the local copy of `path`, or `path` itself in a process that received no files.
std::filesystem::path placeOfFile(const std::filesystem::path& path);

// The same for a file or folder of data, which the launcher copies if the job requests it.
// DTF_SENT_DATA then names the folder of copies, and DTF_STARTED_IN the working directory of the
// launch, where relative paths start.
std::filesystem::path placeOfData(const std::filesystem::path& path);

}  // namespace dtf::yaml
