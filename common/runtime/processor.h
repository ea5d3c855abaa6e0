#pragma once

// The resources of the CPU's kernels: an instruction set, and optionally threads. This file decides
// how work is split.
// //
// Splitting changes no bits: different threads compute only independent outputs, and partial sums
// are added in an order that doesn't depend on the number of threads. So runs on machines with
// different numbers of cores are equal, and so is a run resumed on another machine.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "common/base/check.h"
#include "common/base/isa.h"
#include "common/runtime/compute_pool.h"

namespace dtf::runtime {

// The work of an element or of a multiply-add, in units of about 10 ps.
inline constexpr int64_t kMultiplyAddWork = 1;
inline constexpr int64_t kCopiedWork = 16;     // an element that is read and written
inline constexpr int64_t kFunctionWork = 100;  // an element with an exponential

// A part worth another thread: about 5 us, several times the cost of handing it over.
inline constexpr int64_t kPartWork = 500'000;

// Returns the product of non-negative numbers, saturated: work too large to be computed, as for a
// window of 2^40 elements, only has to be large.
inline int64_t saturatedProduct(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor == 0) return 0;
    if (__builtin_mul_overflow(product, factor, &product)) {
      product = std::numeric_limits<int64_t>::max();
    }
  }
  return product;
}

// Borrows: the pool, if any. Value type.
struct Processor {
  // NOLINTNEXTLINE(google-explicit-constructor): an instruction set alone is one thread
  Processor(Isa with, ComputePool* threads_of = nullptr) : isa(with), pool(threads_of) {}

  // The number of workspaces that kernels need.
  int threads() const { return pool == nullptr ? 1 : pool->threads(); }
  // For the work of one thread within a part.
  Processor alone() const {
    Processor one(isa);
    one.rounds_factors = rounds_factors;
    return one;
  }
  // Sets whether products round their factors to bfloat16; see matrix_product.h.
  Processor rounding(bool rounds = true) const {
    Processor same = *this;
    same.rounds_factors = rounds;
    return same;
  }

  // Calls f(begin, end, thread) for ranges that cover [0, units): all but the last end at multiples
  // of `grain`. `unit_work` is the work of one unit. At most `parts_each` ranges for each thread.
  template <class F>
  void forRanges(int64_t units, int64_t unit_work, int64_t grain, int parts_each,
                 const F& f) const {
    const int64_t parts = partsOf(units, unit_work, grain, parts_each);
    if (parts == 1) return f(int64_t{0}, units, 0);
    const int64_t grains = (units + grain - 1) / grain;
    pool->run(static_cast<int>(parts), [&](int part, int thread) {
      const int64_t begin = grains * part / parts * grain;
      f(begin, std::min(units, grains * (part + 1) / parts * grain), thread);
    });
  }
  template <class F>
  void forRanges(int64_t units, int64_t unit_work, const F& f) const {
    forRanges(units, unit_work, 1, kPartsEach, f);
  }

  // More parts than threads, so that other threads take over the share of a stalled one.
  static constexpr int kPartsEach = 4;

  Isa isa;
  ComputePool* pool;
  int64_t part_work = kPartWork;  // smaller in tests
  bool rounds_factors = false;

 private:
  int64_t partsOf(int64_t units, int64_t unit_work, int64_t grain, int parts_each) const {
    DTF_CHECK(units >= 0 && unit_work > 0 && grain > 0 && parts_each > 0 && part_work > 0);
    if (threads() == 1) return 1;
    const int64_t grains = (units + grain - 1) / grain;
    const int64_t wanted = std::min(saturatedProduct({units, unit_work}) / part_work, grains);
    return std::clamp<int64_t>(wanted, 1, int64_t{threads()} * parts_each);
  }
};

// `bytes` for each thread, on separate cache lines.
class PerThread {
 public:
  PerThread(const Processor& cpu, size_t bytes)
      : threads_(cpu.threads()), stride_((bytes + 63) / 64 * 64) {}
  size_t bytes() const { return stride_ * static_cast<size_t>(threads_); }
  std::byte* of(std::byte* workspace, int thread) const {
    DTF_CHECK(thread >= 0 && thread < threads_);
    return workspace + stride_ * static_cast<size_t>(thread);
  }

 private:
  int threads_;
  size_t stride_;
};

}  // namespace dtf::runtime
