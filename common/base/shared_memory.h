#pragma once

// Memory that another process reads where it lies: nothing of it is copied or sent, only its
// descriptor, once (net/memory_channel.h).

#include <cstddef>
#include <cstdint>

#include "common/base/file.h"

namespace dtf {

// Memory that this process writes and others may be given to read: a memfd (memfd_create(2)), which
// can no longer change its size nor be mapped for writing by anybody else. The kernel frees it when
// nobody has it mapped or open.
//
// Owns: the descriptor and the mapping.
// Threads: as for any memory; the rest is immutable.
class SharedMemory {
 public:
  // Zero, aligned to a page, and there: no step will wait for a page of it.
  // Errors: kUnavailable with what the kernel refuses.
  explicit SharedMemory(size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int descriptor() const { return fd_.get(); }
  // What tells it from all others, of this and of any other process; never 0.
  uint64_t key() const { return key_; }

 private:
  Fd fd_;
  size_t bytes_;
  std::byte* data_ = nullptr;
  uint64_t key_ = 0;
};

// Another process's SharedMemory, to read. It stays when that process ends.
//
// Owns: the mapping.
// Threads: as for any memory; the rest is immutable.
class MappedMemory {
 public:
  // `fd`: of a SharedMemory of at least `bytes`, from 1, of which so many are mapped.
  // Errors: kBadData when it is none, or smaller: reading it could end this process. kUnavailable
  // with what the kernel refuses.
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
