#pragma once

// A folder of this user alone, below the system's temporary one, for as long as this lives.

#include <filesystem>

namespace dtf::launcher {

// Owns: the folder and what is in it.
// Threads: thread-compatible.
// Blocks: on the disk.
// Errors: constructor: kCannotWrite, kPermission.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace dtf::launcher
