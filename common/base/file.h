#pragma once

// Files as dtf needs them: an owned descriptor, whole-file reads with a bound, and replacement that
// a crash can't leave half done.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace dtf {

// Owns a file descriptor; -1 is none. Move-only; thread-compatible.
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

// Throws kPermission where `errno_value` says that this user may not, else kCannotWrite: "cannot
// write PATH: Permission denied (13)".
[[noreturn]] void failWrite(const std::filesystem::path& path, int errno_value);

// Writes `bytes` to a descriptor, in as many pieces as it takes. Returns how many at their end
// could not be written; errno says why.
size_t writeAll(int fd, std::string_view bytes);

// The whole file.
// Errors: kBadData naming the path when it can't be read or is larger than `bytes_max`; kPermission
// where this user may not.
std::string readFile(const std::filesystem::path& path, uint64_t bytes_max);

// Writes `path` so that a reader, or a crash at any moment, sees the old bytes or the new ones,
// never a mixture: temporary file in the same folder, fsync, rename, fsync of the folder.
// Errors: kCannotWrite; kPermission where this user may not.
void atomicReplace(const std::filesystem::path& path, std::string_view bytes);

// mkdir -p, durably (the names of the new folders survive a power cut), then a probe that a file
// can be made there.
// Errors: kCannotWrite naming the folder and the reason; kPermission where this user may not.
void makeWritableFolder(const std::filesystem::path& folder);

}  // namespace dtf
