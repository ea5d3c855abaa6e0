#pragma once

// A zip archive whose files are stored as they are, as NumPy's savez() makes it (PKWARE's
// APPNOTE.TXT, without its 64-bit extension).

#include <cstdint>
#include <string>
#include <string_view>

namespace dtf::model_files {

// Owns: the archive so far.
// Threads: thread-compatible.
// Errors: kCannotWrite when it would become larger than 4 GiB.
class ZipWriter {
 public:
  // A file of `head` and then `body`. Names are UTF-8, each at most once.
  void add(std::string_view name, std::string_view head, std::string_view body);

  // The archive's bytes; call it once, last.
  std::string finish();

 private:
  std::string bytes_;
  std::string directory_;
  uint32_t files_ = 0;
};

}  // namespace dtf::model_files
