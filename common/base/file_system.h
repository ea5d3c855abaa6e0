#pragma once

// The disk as an interface, for data that must survive a crash. Every step whose order matters
// (write, fsync, rename, fsync of the folder) is a call of its own, so that a test can substitute a
// disk that fails, fills up or loses power at any of them. Configuration and input data use
// common/base/file.h.

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
// Errors: kCannotWrite with the path. After an error of sync() or close() the bytes are lost: the
// kernel has dropped them, and a second sync() that succeeds proves nothing.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void write(const void* data, size_t bytes) = 0;  // all of them, after the previous bytes
  virtual void sync() = 0;                                 // fsync
  virtual void close() = 0;  // once; a network file system may report errors only here
};

// An open file for reading.
// Owns: the open file. Thread-compatible.
// Blocks: on the disk.
// Errors: kBadData with the path; kPermission if this user may not read it.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;  // at the time of opening
  // Exactly `bytes` bytes from `offset`; a file that ends earlier is an error.
  virtual void read(uint64_t offset, void* out, size_t bytes) const = 0;
};

struct FolderEntry {
  std::string name;
  bool is_folder = false;  // false for a symbolic link
};

// Errors, with the path and the system's reason: kCannotWrite; kBadData for the three functions
// that only read; kPermission if this user may not. Thread-safe.
// Blocks: on the disk.
class FileSystem {
 public:
  using Path = std::filesystem::path;

  virtual ~FileSystem() = default;
  // Mode 0600. Fails if the name exists.
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
  // Makes the names in the folder durable after create(), rename() and the removals.
  virtual void syncFolder(const Path& folder) = 0;
};

// Returns the file system of the kernel. Has no state.
FileSystem& realFileSystem();

// Returns the file's bytes.
// Errors: kBadData, also if it is larger than `bytes_max`; kPermission.
std::string readWhole(FileSystem& file_system, const FileSystem::Path& file, uint64_t bytes_max);

// Removes a folder with the files and the empty folders in it. Stops at the first error.
void removeTree(FileSystem& file_system, const FileSystem::Path& folder);

}  // namespace dtf
