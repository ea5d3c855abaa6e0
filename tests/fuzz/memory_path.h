#pragma once

// Bytes as a file that never touches a disk, for readers that want a path.

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/fuzz/fuzz.h"

namespace dtf::fuzz {

// Owns the memory. The path is good for as long as this lives.
class MemoryPath {
 public:
  MemoryPath(const uint8_t* data, size_t size) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    FUZZ_CHECK(fd_ >= 0);
    FUZZ_CHECK(size == 0 || ::pwrite(fd_, data, size, 0) == static_cast<ssize_t>(size));
  }
  ~MemoryPath() { ::close(fd_); }
  MemoryPath(const MemoryPath&) = delete;
  MemoryPath& operator=(const MemoryPath&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  const int fd_;
};

}  // namespace dtf::fuzz
