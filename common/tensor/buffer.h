#pragma once

// Owned, aligned memory for tensors.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace dtf {

class SharedMemory;

inline constexpr size_t kBufferAlignment = 64;  // one cache line, one AVX-512 register

// Owns: zero-initialised memory aligned to kBufferAlignment, padded to a multiple of it (so a
// vector load of the last element stays inside).  Move-only; thread-compatible.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);  // data() is nullptr for 0 bytes
  // Allocates memory that other processes can map for reading.
  // Errors: kUnavailable with the kernel's reason.
  static Buffer shared(size_t bytes);
  // Returns that memory; nullptr if the buffer is private to this process.
  const std::shared_ptr<const SharedMemory>& sharedMemory() const { return shared_; }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_.get());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_.get());
  }

 private:
  struct Free {
    bool is_shared;  // the memory belongs to shared_
    void operator()(std::byte* p) const;
  };
  std::shared_ptr<const SharedMemory> shared_;
  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_ = 0;
};

}  // namespace dtf
