#pragma once

// Where the bytes of a job's file are. A launcher on another host has sent them to this one, where
// the file itself may not be: then DTF_SENT_FILES names a folder that has each at its absolute path
// (launcher/ssh/sent_files_folder.h). All else about the file, its name in messages and what its
// relative paths start at, stays its own.

#include <filesystem>

namespace dtf::yaml {

// `path` itself for a process that nothing was sent to.
std::filesystem::path placeOfFile(const std::filesystem::path& path);

// The same for a file or folder of data, which the launcher has copied if the job asks for that:
// then DTF_SENT_DATA names the folder, and DTF_STARTED_IN the one where the job was started, from
// which relative paths go on.
std::filesystem::path placeOfData(const std::filesystem::path& path);

}  // namespace dtf::yaml
