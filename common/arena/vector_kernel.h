#pragma once

// Compiles a loop over floats for every instruction set of base/isa.h, and calls it for the best
// that the process may use.

#include "common/base/isa.h"

// Marks a loop for vectorised(). It may have only IEEE-exact operations in a fixed order: with
// -ffp-contract=off all instruction sets then have the same results.
#define DTF_VECTOR_KERNEL inline __attribute__((always_inline))
#define DTF_RESTRICT __restrict

namespace dtf::arena {

namespace compiled_for {

template <auto Kernel, class... Args>
__attribute__((noinline)) auto baseline(Args... args) {
  return Kernel(args...);
}
#if defined(__x86_64__)
template <auto Kernel, class... Args>
__attribute__((noinline, target("arch=x86-64-v3"))) auto v3(Args... args) {
  return Kernel(args...);
}
template <auto Kernel, class... Args>
__attribute__((noinline, target("arch=x86-64-v4"))) auto v4(Args... args) {
  return Kernel(args...);
}
#endif

}  // namespace compiled_for

// Calls Kernel(args...). Thread-safe as far as the kernel is.
template <auto Kernel, class... Args>
auto vectorised(Args... args) {
#if defined(__x86_64__)
  if (bestIsa() == Isa::kV4) return compiled_for::v4<Kernel>(args...);
  if (bestIsa() == Isa::kV3) return compiled_for::v3<Kernel>(args...);
#endif
  return compiled_for::baseline<Kernel>(args...);
}

}  // namespace dtf::arena
