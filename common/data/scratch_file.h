#pragma once

// A file for examples that are too many for memory.

#include <cstddef>
#include <filesystem>
#include <string_view>

#include "common/base/file.h"

namespace dtf::data {

// A file without a name in $TMPDIR, or /var/tmp: it disappears with its last descriptor and
// mapping.
// Owns: its descriptor.
// Threads: thread-compatible.
// Errors: kCannotWrite naming the folder and what to do, if there is no room.
class ScratchFile {
 public:
  // Reserves so many bytes, so that later writes don't find the disk full.
  explicit ScratchFile(size_t bytes);
  // Creates an empty file, which append() extends.
  ScratchFile();

  // Blocks: on the disk.
  void append(std::string_view bytes);

  int fd() const { return file_.get(); }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  Fd file_;
  size_t appended_ = 0;
};

}  // namespace dtf::data
