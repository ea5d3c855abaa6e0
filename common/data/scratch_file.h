#pragma once

// A file for examples that are too many for memory.

#include <cstddef>
#include <filesystem>
#include <string_view>

#include "common/base/file.h"

namespace dtf::data {

// A file without a name in $TMPDIR, or /var/tmp: it is gone with the last who has it open or
// mapped.
// Owns: its descriptor.
// Threads: thread-compatible.
// Errors: kCannotWrite naming the folder and what to do, where there is no room.
class ScratchFile {
 public:
  // With room for so many bytes: what is written later does not find the disk full.
  explicit ScratchFile(size_t bytes);
  // Empty, and as long as what is appended.
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
