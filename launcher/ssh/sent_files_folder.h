#pragma once

// The files of a job on a host that has no disk in common with the one where it was started.

#include <filesystem>
#include <optional>

#include "launcher/ssh/locked_folder.h"
#include "launcher/ssh/messages.h"

namespace dtf::launcher {

// A folder below the run directory, of this user alone, with each file at its absolute path: tasks
// that find the folder in DTF_SENT_FILES read it there, and know it by its own name
// (common/yaml/sent_files.h). Removes what agents left there that were killed.
// Owns: the folder.
// Threads: thread-compatible.
// Blocks: on the disk.
class SentFilesFolder {
 public:
  // Makes the run directory where it is missing.
  // Errors: kCannotWrite, kPermission.
  SentFilesFolder(const std::filesystem::path& run_dir, const SentFiles& files);

  const std::filesystem::path& path() const { return folder_->path(); }

  // A reader sees the file as it was or as it is now, whole. Only of files that it was made with.
  // Errors: kBadData for another; kCannotWrite.
  void replace(const std::filesystem::path& file, std::string_view text);

 private:
  std::optional<LockedFolder> folder_;  // from the constructor on
};

}  // namespace dtf::launcher
