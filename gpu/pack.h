#pragma once

// Elements that a thread reads and writes together: memory is fast only in units of 16 bytes.

#include <cstdint>

#include "gpu/bfloat16.h"

namespace dtf::gpu {

// Value type. A pointer to it must be aligned to its size, up to 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T at[N];
  DTF_HOST_DEVICE Pack& operator+=(const Pack& other) {
    for (int i = 0; i < N; ++i) at[i] += other.at[i];
    return *this;
  }
};

// The number of elements of T in 16 bytes.
template <class T>
inline constexpr int kPackOf = 16 / static_cast<int>(sizeof(T));

template <int N, class T>
DTF_HOST_DEVICE Pack<T, N> load(const T* from, int64_t pack) {
  return reinterpret_cast<const Pack<T, N>*>(from)[pack];
}
template <int N, class T>
DTF_HOST_DEVICE void store(T* to, int64_t pack, const Pack<T, N>& value) {
  reinterpret_cast<Pack<T, N>*>(to)[pack] = value;
}

// i % n and i / n. GPUs divide 64 bits in a hundred instructions, 32 in twenty.
DTF_HOST_DEVICE inline int64_t remainderOf(int64_t i, int64_t n) {
  if (((i | n) >> 32) == 0) return static_cast<uint32_t>(i) % static_cast<uint32_t>(n);
  return i % n;
}
DTF_HOST_DEVICE inline int64_t quotientOf(int64_t i, int64_t n) {
  if (((i | n) >> 32) == 0) return static_cast<uint32_t>(i) / static_cast<uint32_t>(n);
  return i / n;
}

}  // namespace dtf::gpu
