#pragma once

// How a loop over floats is compiled for several instruction sets.

// The function is compiled for AVX-512, AVX2 and the baseline, and the loader picks one. Not under
// sanitizers, whose runtime isn't up yet when the picking is done, and not with clang 14, which has
// no such `arch=` targets. With -ffp-contract=off and IEEE-exact operations only, all have the same
// results.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DTF_VECTOR_KERNEL \
  __attribute__((noinline, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DTF_VECTOR_KERNEL __attribute__((noinline))
#endif
#define DTF_RESTRICT __restrict
