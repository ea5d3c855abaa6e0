#pragma once

// A zip archive of uncompressed files, like NumPy's savez() (PKWARE's APPNOTE.TXT, without its
// 64-bit extension).

#include <cstdint>
#include <string>
#include <string_view>

namespace dtf::model_files {

// Owns: the archive so far.
// Threads: thread-compatible.
// Errors: kCannotWrite when it would become larger than 4 GiB.
class ZipWriter {
 public:
  // Adds a file of `head` and then `body`. Names are UTF-8, each at most once.
  void add(std::string_view name, std::string_view head, std::string_view body);

  // Returns the archive's bytes; call it once, last.
  std::string finish();

 private:
  std::string bytes_;
  std::string directory_;
  uint32_t files_ = 0;
};

}  // namespace dtf::model_files
