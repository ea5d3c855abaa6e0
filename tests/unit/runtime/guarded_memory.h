#pragma once

// Memory that ends where an inaccessible page begins. A vector load or store one element too far
// crashes on every build, even in code that sanitizers don't instrument (masked instructions).

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "common/base/check.h"

namespace dtf::runtime::testing {

// Owns `count` elements of T that end at the inaccessible page. Thread-compatible.
template <class T>
class Guarded {
 public:
  explicit Guarded(size_t count) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = count * sizeof(T);
    const size_t usable = (bytes + page - 1) / page * page;
    mapped_ = usable + page;
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    DTF_CHECK(base_ != MAP_FAILED);
    DTF_CHECK(mprotect(static_cast<char*>(base_) + usable, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(static_cast<char*>(base_) + usable - bytes);
  }
  explicit Guarded(const std::vector<T>& values) : Guarded(values.size()) {
    std::memcpy(data_, values.data(), values.size() * sizeof(T));
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  T* data() { return data_; }

 private:
  void* base_ = nullptr;
  size_t mapped_ = 0;
  T* data_ = nullptr;
};

}  // namespace dtf::runtime::testing
