#pragma once

// Pairs the elements of two operands when one is repeated: graph/shape_functions.h, broadcast().
// Internal to the CPU's kernels.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "common/runtime/kernel.h"

namespace dtf::runtime {

// A dimension to iterate over: its size, and the distance of its elements.
struct StridedAxis {
  int64_t size = 1, stride = 0;
};
// Returns the offset of element `index` in the order of these axes, the innermost last.
inline int64_t offsetOf(const std::vector<StridedAxis>& axes, int64_t index) {
  int64_t offset = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    offset += index % axes[i].size * axes[i].stride;
    index /= axes[i].size;
  }
  return offset;
}

// Prepared once for an operation with one or two inputs and one output, each of full size or
// repeated. Value type; immutable.
class Broadcast {
 public:
  explicit Broadcast(const Operation& operation) : Broadcast(shapesOf(operation)) {}

  int64_t elements() const { return elements_; }
  // Returns whether nothing is repeated: all elements pair up in order.
  bool isPlain() const { return outer_a_.empty() && !repeats_a_ && !repeats_b_; }

  // Calls loop(a, b, y, n) for runs of the output's elements [first, first + count); a, b and y
  // point to n elements each.
  template <class T, class Y, class Loop>
  void forRange(int64_t first, int64_t count, const T* a, const T* b, Y* y,
                const Loop& loop) const {
    constexpr int64_t kRepeated = 256;
    std::array<T, kRepeated> many_a, many_b;
    for (const int64_t end = first + count; first < end;) {
      const int64_t run = first / width_, within = first % width_;
      int64_t n = std::min(width_ - within, end - first);
      const T* const from_a = a + offsetOf(outer_a_, run) + (repeats_a_ ? 0 : within);
      const T* const from_b = b + offsetOf(outer_b_, run) + (repeats_b_ ? 0 : within);
      if (repeats_a_ || repeats_b_) n = std::min(n, kRepeated);
      if (repeats_a_) std::fill_n(many_a.begin(), n, *from_a);
      if (repeats_b_) std::fill_n(many_b.begin(), n, *from_b);
      loop(repeats_a_ ? many_a.data() : from_a, repeats_b_ ? many_b.data() : from_b, y + first, n);
      first += n;
    }
  }

 private:
  struct Shapes {
    Shape a, b, y;
  };
  static Shapes shapesOf(const Operation& o) {
    return {o.input_specs.front().shape, o.input_specs.back().shape, o.output_specs[0].shape};
  }

  // Merges neighbouring dimensions in which the same operands are repeated.
  explicit Broadcast(const Shapes& shapes) : elements_(shapes.y.elements()) {
    if (elements_ == 0) return;
    bool is_first = true;  // the innermost one
    int64_t stride_a = 1, stride_b = 1;
    const int rank = shapes.y.rank();
    for (int back = 1; back <= rank; ++back) {
      const int64_t size = shapes.y.dim(rank - back);
      if (size == 1) continue;
      const bool repeats_a = isOne(shapes.a, back), repeats_b = isOne(shapes.b, back);
      if (is_first || (outer_a_.empty() && repeats_a == repeats_a_ && repeats_b == repeats_b_)) {
        is_first = false;
        repeats_a_ = repeats_a, repeats_b_ = repeats_b;
        width_ *= size;
      } else {
        outer_a_.insert(outer_a_.begin(), {size, repeats_a ? 0 : stride_a});
        outer_b_.insert(outer_b_.begin(), {size, repeats_b ? 0 : stride_b});
      }
      if (!repeats_a) stride_a *= size;
      if (!repeats_b) stride_b *= size;
    }
  }
  static bool isOne(const Shape& shape, int back) {
    return back > shape.rank() || shape.dim(shape.rank() - back) == 1;
  }

  int64_t elements_;
  int64_t width_ = 1;                           // of a run
  bool repeats_a_ = false, repeats_b_ = false;  // within a run
  std::vector<StridedAxis> outer_a_, outer_b_;  // the axes of the runs
};

}  // namespace dtf::runtime
