#pragma once

// Files: an owned descriptor, whole-file reads with a bound, and replacement that a crash can't
// leave half done.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace dtf {

// Owns a file descriptor; -1 if empty. Move-only; thread-compatible.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// Throws kPermission if `errno_value` means missing permission, else kCannotWrite: "cannot write
// PATH: Permission denied (13)".
[[noreturn]] void failWrite(const std::filesystem::path& path, int errno_value);

// Writes `bytes` to a descriptor, in several pieces if needed. Returns the number of bytes at the
// end that could not be written; errno holds the reason.
size_t writeAll(int fd, std::string_view bytes);

// Reads the whole file.
// Errors: kBadData with the path if it can't be read or is larger than `bytes_max`; kPermission if
// this user may not read it.
std::string readFile(const std::filesystem::path& path, uint64_t bytes_max);

// Writes `path` so that a reader, or a crash at any moment, sees the old bytes or the new ones,
// never a mixture: temporary file in the same folder, fsync, rename, fsync of the folder.
// Errors: kCannotWrite; kPermission if this user may not write there.
void atomicReplace(const std::filesystem::path& path, std::string_view bytes);

// Removes the temporary files that atomicReplace() and makeWritableFolder() of processes of this
// host that are no longer there have left in `folder`: those processes were killed. Files of other
// names stay. A folder that can't be read, or a file that can't be removed, is passed over.
void removeTemporaries(const std::filesystem::path& folder);

// Makes a folder and its parents (mkdir -p), durably: the new names survive a power cut. Then
// probes that a file can be made there.
// Errors: kCannotWrite with the folder and the reason; kPermission if this user may not write
// there.
void makeWritableFolder(const std::filesystem::path& folder);

}  // namespace dtf
