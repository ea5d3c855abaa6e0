#include "common/base/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "common/base/error.h"
#include "common/base/file.h"

namespace dtf {

namespace {

using Path = FileSystem::Path;

[[noreturn]] void failWrite(const char* what, const Path& path, int error) {
  throw Error(ErrorCode::kCannotWrite,
              "cannot " + std::string(what) + " " + path.string() + ": " + errnoText(error));
}

[[noreturn]] void failRead(const Path& path, const std::string& why,
                           ErrorCode code = ErrorCode::kBadData) {
  throw Error(code, "cannot read " + path.string() + ": " + why);
}

[[noreturn]] void failRead(const Path& path, int error) {
  const bool forbidden = error == EACCES || error == EPERM;
  failRead(path, errnoText(error), forbidden ? ErrorCode::kPermission : ErrorCode::kBadData);
}

class RealWritableFile final : public WritableFile {
 public:
  RealWritableFile(Fd fd, Path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  void write(const void* data, size_t bytes) override {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::write(fd_.get(), at, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) failWrite("write", path_, errno);
      at += n;
      bytes -= static_cast<size_t>(n);
    }
  }

  void sync() override {
    if (::fsync(fd_.get()) != 0) failWrite("fsync", path_, errno);
  }

  void close() override {
    // No second close() after EINTR: on Linux the descriptor is already closed.
    if (::close(fd_.release()) != 0 && errno != EINTR) failWrite("close", path_, errno);
  }

 private:
  Fd fd_;
  Path path_;
};

class RealReadableFile final : public ReadableFile {
 public:
  RealReadableFile(Fd fd, Path path, uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  uint64_t size() const override { return size_; }

  void read(uint64_t offset, void* out, size_t bytes) const override {
    char* at = static_cast<char*>(out);
    while (bytes > 0) {
      const ssize_t n = ::pread(fd_.get(), at, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) failRead(path_, errno);
      if (n == 0) failRead(path_, "it ends at byte " + std::to_string(offset));
      at += n;
      offset += static_cast<uint64_t>(n);
      bytes -= static_cast<size_t>(n);
    }
  }

 private:
  Fd fd_;
  Path path_;
  uint64_t size_;
};

// Returns whether an entry is a folder, also where readdir() does not know its kind.
bool isFolder(int folder_fd, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat info {};
  return ::fstatat(folder_fd, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(info.st_mode);
}

class RealFileSystem final : public FileSystem {
 public:
  std::unique_ptr<WritableFile> create(const Path& file) override {
    Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd.valid()) failWrite("create", file, errno);
    return std::make_unique<RealWritableFile>(std::move(fd), file);
  }

  std::unique_ptr<ReadableFile> open(const Path& file) override {
    // O_NONBLOCK: a named pipe without a writer would block the caller.
    Fd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd.valid()) failRead(file, errno);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) failRead(file, errno);
    if (!S_ISREG(info.st_mode)) failRead(file, "it isn't a regular file");
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    return std::make_unique<RealReadableFile>(std::move(fd), file,
                                              static_cast<uint64_t>(info.st_size));
  }

  std::vector<FolderEntry> list(const Path& folder) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> handle(::opendir(folder.c_str()), ::closedir);
    if (!handle) failRead(folder, errno);
    std::vector<FolderEntry> entries;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(handle.get());
      if (entry == nullptr && errno != 0) failRead(folder, errno);
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      entries.push_back({name, isFolder(::dirfd(handle.get()), *entry)});
    }
    std::sort(entries.begin(), entries.end(),
              [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
    return entries;
  }

  bool exists(const Path& path) override {
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR) failRead(path, errno);
    return false;
  }

  void makeFolder(const Path& folder) override {
    if (::mkdir(folder.c_str(), 0700) != 0) failWrite("create the folder", folder, errno);
  }

  void rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      failWrite(("rename " + from.string() + " to").c_str(), to, errno);
  }

  void removeFile(const Path& file) override {
    if (::unlink(file.c_str()) != 0) failWrite("remove", file, errno);
  }

  void removeFolder(const Path& folder) override {
    if (::rmdir(folder.c_str()) != 0) failWrite("remove the folder", folder, errno);
  }

  void syncFolder(const Path& folder) override {
    Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid() || ::fsync(fd.get()) != 0) failWrite("fsync the folder", folder, errno);
  }
};

}  // namespace

FileSystem& realFileSystem() {
  static RealFileSystem file_system;
  return file_system;
}

std::string readWhole(FileSystem& file_system, const Path& file, uint64_t bytes_max) {
  const auto opened = file_system.open(file);
  if (opened->size() > bytes_max)
    failRead(file, "it has " + std::to_string(opened->size()) + " bytes, at most " +
                       std::to_string(bytes_max) + " are read");
  std::string bytes(opened->size(), '\0');
  opened->read(0, bytes.data(), bytes.size());
  return bytes;
}

void removeTree(FileSystem& file_system, const Path& folder) {
  for (const FolderEntry& entry : file_system.list(folder)) {
    if (entry.is_folder)
      file_system.removeFolder(folder / entry.name);
    else
      file_system.removeFile(folder / entry.name);
  }
  file_system.removeFolder(folder);
}

}  // namespace dtf
