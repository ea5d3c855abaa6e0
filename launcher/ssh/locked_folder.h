#pragma once

// A folder that goes with the process that made it, however that ends.

#include <filesystem>
#include <string_view>

#include "common/base/file.h"

namespace dtf::launcher {

// A new, empty folder of this user alone, in `parent`, which is there. Removes those of the same
// prefix whose processes were killed, on this host: where the disk is shared (NFS), the lock of a
// folder is known to the kernel that gave it alone.
// Owns: the folder with all that is put there, and a lock on it that the kernel gives back.
// Threads: thread-compatible.
// Blocks: on the disk.
class LockedFolder {
 public:
  // `prefix`: of its name, ".use-"; the name of this host follows.
  // Errors: kCannotWrite, kPermission.
  LockedFolder(const std::filesystem::path& parent, std::string_view prefix);
  ~LockedFolder();
  LockedFolder(const LockedFolder&) = delete;
  LockedFolder& operator=(const LockedFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
  Fd lock_;
};

}  // namespace dtf::launcher
