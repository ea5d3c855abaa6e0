#pragma once

// Memory that another process reads in place. Only its descriptor is sent, once
// (net/memory_channel.h); the bytes are never copied.

#include <cstddef>
#include <cstdint>

#include "common/base/file.h"

namespace dtf {

// Memory that this process writes and other processes may read: a memfd (memfd_create(2)), sealed
// against changes of its size and against other writable mappings. The kernel frees it once no
// process has it mapped or open.
//
// Owns: the descriptor and the mapping.
// Threads: as for any memory; the members are immutable.
class SharedMemory {
 public:
  // Zeroed, aligned to a page and allocated: no step waits for one of its pages.
  // Errors: kUnavailable with the kernel's reason.
  explicit SharedMemory(size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int descriptor() const { return fd_.get(); }
  // Unique among all shared memory of all processes; never 0.
  uint64_t key() const { return key_; }

 private:
  Fd fd_;
  size_t bytes_;
  std::byte* data_ = nullptr;
  uint64_t key_ = 0;
};

// The SharedMemory of another process, mapped for reading. It outlives that process.
//
// Owns: the mapping.
// Threads: as for any memory; the members are immutable.
class MappedMemory {
 public:
  // Maps `bytes` bytes, at least 1, of the SharedMemory with descriptor `fd`.
  // Errors: kBadData if `fd` is no such memory, or smaller: reading it could kill this process.
  // kUnavailable with the kernel's reason.
  MappedMemory(const Fd& fd, size_t bytes);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  const std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  const std::byte* data_ = nullptr;
};

}  // namespace dtf
