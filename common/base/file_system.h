#pragma once

// The disk as an interface, for what must survive a crash: every step whose order matters (write,
// fsync, rename, fsync of the folder) is a call of its own, so that a test can stand a disk there
// that fails, fills up or loses power at any of them. Not for configuration or input data: those
// use common/base/file.h.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace dtf {

// A new file being written, front to back.
// Owns: the open file; the destructor closes it and ignores errors.
// Threads: one at a time.
// Blocks: on the disk.
// Errors: kCannotWrite naming the path. After an error of sync() or close() the bytes must be taken
// for lost: the kernel has dropped them, and a second sync() that succeeds means nothing.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void write(const void* data, size_t bytes) = 0;  // all of them, after those before
  virtual void sync() = 0;                                 // fsync
  virtual void close() = 0;  // once; reports what a network file system reports only now
};

// An open file for reading.
// Owns: the open file. Thread-compatible.
// Blocks: on the disk.
// Errors: kBadData naming the path; kPermission where this user may not.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;  // when it was opened
  // Exactly `bytes` bytes from `offset`; a file that ends earlier is an error.
  virtual void read(uint64_t offset, void* out, size_t bytes) const = 0;
};

struct FolderEntry {
  std::string name;
  bool is_folder = false;  // a symbolic link is not
};

// Errors: kCannotWrite (kBadData of the three that only read, kPermission where this user may not
// read) with the path and the system's reason. Thread-safe.
// Blocks: on the disk.
class FileSystem {
 public:
  using Path = std::filesystem::path;

  virtual ~FileSystem() = default;
  // Mode 0600. It is an error when something of that name exists.
  virtual std::unique_ptr<WritableFile> create(const Path& file) = 0;
  // Does not follow a symbolic link in the last part of the path.
  virtual std::unique_ptr<ReadableFile> open(const Path& file) = 0;
  virtual std::vector<FolderEntry> list(const Path& folder) = 0;  // sorted by name
  virtual bool exists(const Path& path) = 0;
  virtual void makeFolder(const Path& folder) = 0;  // mode 0700; its parent must exist
  // Within one file system. A file at `to` is replaced; a folder there must be empty.
  virtual void rename(const Path& from, const Path& to) = 0;
  virtual void removeFile(const Path& file) = 0;
  virtual void removeFolder(const Path& folder) = 0;  // must be empty
  // Makes the names in the folder durable: what was created, renamed or removed in it.
  virtual void syncFolder(const Path& folder) = 0;
};

// The kernel's. Has no state.
FileSystem& realFileSystem();

// The file's bytes.
// Errors: kBadData, also when it is larger than `bytes_max`; kPermission.
std::string readWhole(FileSystem& file_system, const FileSystem::Path& file, uint64_t bytes_max);

// Removes the folder with the files and the empty folders in it. Stops at the first error.
void removeTree(FileSystem& file_system, const FileSystem::Path& folder);

}  // namespace dtf
