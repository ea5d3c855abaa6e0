#pragma once

// What a launch copies to its hosts (launch.copy), on the launcher's side: which files, and their
// digests.

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file.h"
#include "common/cluster/spec.h"
#include "launcher/ssh/messages.h"
#include "launcher/ssh/sha256.h"

namespace dtf::launcher {

// The programs of this host that may be copied: name -> file; "dtf-agent" too.
using ProgramFiles = std::map<std::string, std::filesystem::path>;

// The same file as before, as far as its metadata tell.
struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t bytes = 0;
  int64_t seconds = 0, nanoseconds = 0;  // when it was changed
  bool operator==(const FileStamp&) const = default;
};
FileStamp stampOf(const struct stat& status);

// A file that is copied, of this host.
struct CopiedFile {
  OfferedFile offered;
  std::filesystem::path file;
  FileStamp stamp;
};
// What hosts with the same kinds of tasks need.
struct CopiedFiles {
  std::vector<CopiedFile> files;
  std::vector<std::filesystem::path> folders;
  uint64_t bytes() const;
};
// What a host with those tasks needs, with sizes but without digests yet: programs, and the data
// that its workers read; the evaluation's only the chief's.
// Blocks: on the disk, where a folder of images is looked through.
// Errors: those of data::filesOf(); kBadConfig for more than kCopiedFilesMax files.
inline constexpr size_t kCopiedFilesMax = 2'000'000;
CopiedFiles filesFor(const cluster::JobSpec& job, const ProgramFiles& programs,
                     const std::vector<TaskId>& tasks);

// Computes digests, a piece at a time, so that its caller can do other things in between.
// Owns: the file that is being read. Each is read once, however many need it.
// Borrows: what it is given, until it has finished.
// Threads: thread-compatible.
// Blocks: step(), on the disk.
class FileDigests {
 public:
  void add(CopiedFiles& files);
  // Some MiB more. False: all have their digests.
  // Errors: kBadData or kPermission for a file that can't be read, or that changes meanwhile.
  bool step();
  uint64_t bytes() const { return bytes_; }  // of all files, once each
  uint64_t done() const { return done_; }

 private:
  struct Known {
    std::string digest;
    FileStamp stamp;
    std::vector<CopiedFile*> wanted;  // by these
  };
  void begin();
  void finish();

  std::map<std::filesystem::path, Known> files_;
  std::map<std::filesystem::path, Known>::iterator at_ = files_.end();
  bool started_ = false;
  Fd in_;
  uint64_t read_ = 0;  // of the file at_
  Sha256 sha256_;
  uint64_t bytes_ = 0, done_ = 0;
};

// A file of data, opened to be read.
// Errors: kBadData or kPermission, naming it.
Fd openToCopy(const std::filesystem::path& file, FileStamp& stamp);
[[noreturn]] void failChanged(const std::filesystem::path& file);

}  // namespace dtf::launcher
