#pragma once

// The files that the tasks of a host write into its run directory for people to look at, on their
// way to the run directory where the job was started: TensorBoard's events, and timelines. The
// trained model comes at the end: model_fetch.h.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file.h"

namespace dtf::launcher {

// Some bytes of one.
struct FilePiece {
  std::string name;     // "events/NAME", "timeline/NAME"
  uint64_t offset = 0;  // 0: the file begins anew
  std::string bytes;
};

inline constexpr size_t kFilePieceBytesMax = size_t{256} << 10;
inline constexpr size_t kRunFilesMax = 10'000;  // of one host

// Whether a file of that name may travel: never one outside the folders above.
bool isRunFile(std::string_view name);

using FileSizes = std::map<std::string, uint64_t>;

// The host's end: says what is new.
// Threads: thread-compatible.
// Blocks: on the disk.
// Errors: none are thrown: what can't be read doesn't travel.
class RunFilesReader {
 public:
  // `kept`: what the other end has of the events already.
  RunFilesReader(std::filesystem::path run_dir, FileSizes kept);

  // Looks at the folders again.
  void look();
  // What was found by the last look and not given yet. Nullopt: nothing.
  std::optional<FilePiece> next();

 private:
  struct File {
    ino_t inode = 0;  // another: it was replaced
    uint64_t size = 0;
    uint64_t given = 0;
  };
  std::optional<FilePiece> read(const std::string& name, File& file) const;

  const std::filesystem::path run_dir_;
  const FileSizes kept_;
  std::map<std::string, File> files_;
};

// The launcher's end.
// Owns: a file in the run directory by which a host sees that it has the same one, for as long as
// this lives, and a lock on it: another launcher that has the run directory removes only those that
// nobody holds.
// Threads: thread-compatible.
// Blocks: on the disk.
class RunFilesWriter {
 public:
  // `run_dir` is there. One that can't be written has no mark.
  explicit RunFilesWriter(std::filesystem::path run_dir);
  ~RunFilesWriter();
  RunFilesWriter(const RunFilesWriter&) = delete;
  RunFilesWriter& operator=(const RunFilesWriter&) = delete;

  const std::string& mark() const { return mark_; }  // a file's name; empty: none
  FileSizes eventSizes() const;
  // Errors: kBadData for a name that may not travel, or too many bytes.
  static void check(const FilePiece& piece);
  // The first piece of a file takes the place of what is there, which whoever reads or writes it
  // keeps.
  // Errors: kBadData for a name that may not travel; kCannotWrite, also where the piece is not the
  // next one of the file that is there.
  void write(const FilePiece& piece) const;

 private:
  static void begin(const std::filesystem::path& path, std::string_view bytes);

  const std::filesystem::path run_dir_;
  std::string mark_;
  Fd lock_;
};

// Whether `run_dir` on this host is the one with that mark.
bool hasMark(const std::filesystem::path& run_dir, const std::string& mark);

}  // namespace dtf::launcher
