// Sums, means, maxima and minima over dimensions, and BroadcastTo, the gradient of a sum; the
// semantics are in graph/standard_math_ops.cc.

#include <algorithm>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "common/runtime/broadcast.h"
#include "common/runtime/cpu_kernels_internal.h"

namespace dtf::runtime {
namespace {

using Axes = std::vector<StridedAxis>;

int64_t countOf(const Axes& axes) {
  int64_t count = 1;
  for (const StridedAxis& axis : axes) count *= axis.size;
  return count;
}

// The dimensions of a tensor in two kinds: kept and reduced. Neighbours of a kind are merged. Value
// type; immutable.
struct Reduction {
  explicit Reduction(const Operation& o) {
    const Shape& x = o.input_specs[0].shape;
    const Shape axes = o.attributeOr<Shape>("axes", {});
    std::vector<bool> is_reduced(static_cast<size_t>(x.rank()), axes.rank() == 0);
    for (const int64_t axis : axes.dims()) is_reduced[static_cast<size_t>(axis)] = true;
    int64_t stride = 1;
    for (int i = x.rank(); i-- > 0;) {
      const int64_t size = x.dim(i);
      if (size != 1) add(is_reduced[static_cast<size_t>(i)], size, stride);
      stride *= size;
    }
    elements = countOf(reduced);
    if (!ends_reduced && !kept.empty()) return;
    width = reduced.empty() ? 1 : reduced.back().size;
    if (!reduced.empty()) reduced.pop_back();
  }

  void add(bool is_reduced, int64_t size, int64_t stride) {
    Axes& axes = is_reduced ? reduced : kept;
    const bool is_innermost = reduced.empty() && kept.empty();
    if (!is_innermost && is_reduced == last_reduced) {
      axes.front().size *= size;
    } else {
      axes.insert(axes.begin(), {size, stride});
    }
    if (is_innermost) ends_reduced = is_reduced;
    last_reduced = is_reduced;
  }

  Axes kept, reduced;         // without the run of `width` adjacent elements
  int64_t width = 0;          // adjacent elements of one sum; 0: the innermost dimensions are kept
  int64_t elements = 0;       // of each sum
  bool ends_reduced = true;   // whether the innermost dimension is reduced
  bool last_reduced = false;  // whether the outermost dimension so far is reduced
};

// Returns the elements of result `i`. A tensor without elements may have no memory, and its address
// must not be moved.
const float* elementsOf(const Reduction& r, const float* x, int64_t i) {
  return r.elements == 0 ? x : x + offsetOf(r.kept, i);
}

using SumLoop = double (*)(const float*, int64_t);

// Sums adjacent elements, in double precision.
void sumRows(const Reduction& r, SumLoop sum, double share, const float* x, float* y, int64_t first,
             int64_t count) {
  const int64_t runs = r.width == 0 ? 0 : countOf(r.reduced);
  for (int64_t i = first; i < first + count; ++i) {
    const float* const from = elementsOf(r, x, i);
    double total = 0;
    for (int64_t run = 0; run < runs; ++run) total += sum(from + offsetOf(r.reduced, run), r.width);
    y[i] = static_cast<float>(total / share);
  }
}

// Sums elements that are apart, several adjacent results at a time. Each result adds its elements
// in their order, however the work is split.
void sumColumns(const Reduction& r, double share, const float* x, float* y, int64_t first,
                int64_t count) {
  constexpr int64_t kAtOnce = 64;
  const int64_t columns = r.kept.back().size;
  for (const int64_t end = first + count; first < end;) {
    const int64_t n = std::min({kAtOnce, columns - first % columns, end - first});
    const float* const from = elementsOf(r, x, first);
    double totals[kAtOnce] = {};
    for (int64_t i = 0; i < r.elements; ++i) {
      const float* const row = from + offsetOf(r.reduced, i);
      for (int64_t c = 0; c < n; ++c) totals[c] += row[c];
    }
    for (int64_t c = 0; c < n; ++c) y[first + c] = static_cast<float>(totals[c] / share);
    first += n;
  }
}

std::unique_ptr<Kernel> reduce(const Operation& o, const Processor& cpu, bool is_mean) {
  const Reduction reduction(o);
  const double share = is_mean ? static_cast<double>(reduction.elements) : 1;
  DTF_CHECK(share > 0);
  const auto run = [cpu, reduction, share, sum = vectorLoops(cpu.isa).sum,
                    n = o.output_specs[0].shape.elements()](const KernelArguments& a) {
    const int64_t work = saturatedProduct({std::max<int64_t>(1, reduction.elements), kCopiedWork});
    if (reduction.width == 0 && reduction.elements > 0) {
      return forElements(cpu, n, work, [&](int64_t first, int64_t count) {
        sumColumns(reduction, share, in(a, 0), out(a, 0), first, count);
      });
    }
    cpu.forRanges(n, work, [&](int64_t begin, int64_t end, int) {
      sumRows(reduction, sum, share, in(a, 0), out(a, 0), begin, end - begin);
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

// Picks one of two elements.
using PickLoop = VectorLoops::Binary;
constexpr int64_t kPickedAtOnce = 64;

// Reduces adjacent elements: vectors first, then the vector.
void pickRows(const Reduction& r, PickLoop pick, float none, const float* x, float* y,
              int64_t first, int64_t count) {
  const int64_t runs = r.width == 0 ? 0 : countOf(r.reduced);
  for (int64_t i = first; i < first + count; ++i) {
    const float* const from = elementsOf(r, x, i);
    float picked[kPickedAtOnce];
    std::fill_n(picked, kPickedAtOnce, none);
    for (int64_t run = 0; run < runs; ++run) {
      const float* const row = from + offsetOf(r.reduced, run);
      for (int64_t k = 0; k < r.width; k += kPickedAtOnce)
        pick(picked, row + k, picked, std::min(kPickedAtOnce, r.width - k));
    }
    for (int64_t left = std::min(kPickedAtOnce, r.width); left > 1; left -= left / 2)
      pick(picked, picked + left - left / 2, picked, left / 2);
    y[i] = picked[0];
  }
}

// Reduces elements that are apart, adjacent results at a time.
void pickColumns(const Reduction& r, PickLoop pick, float none, const float* x, float* y,
                 int64_t first, int64_t count) {
  const int64_t columns = r.kept.back().size;
  std::fill_n(y + first, count, none);
  for (const int64_t end = first + count; first < end;) {
    const int64_t n = std::min(columns - first % columns, end - first);
    const float* const from = elementsOf(r, x, first);
    for (int64_t i = 0; i < r.elements; ++i)
      pick(y + first, from + offsetOf(r.reduced, i), y + first, n);
    first += n;
  }
}

std::unique_ptr<Kernel> extreme(const Operation& o, const Processor& cpu, bool is_largest) {
  const VectorLoops& loops = vectorLoops(cpu.isa);
  const PickLoop pick = is_largest ? loops.maximum : loops.minimum;
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const auto run = [cpu, reduction = Reduction(o), pick, none = is_largest ? -kInfinite : kInfinite,
                    n = o.output_specs[0].shape.elements()](const KernelArguments& a) {
    const int64_t work = saturatedProduct({std::max<int64_t>(1, reduction.elements), kCopiedWork});
    const bool by_column = reduction.width == 0 && reduction.elements > 0;
    forElements(cpu, n, work, [&](int64_t first, int64_t count) {
      const auto picked = by_column ? pickColumns : pickRows;
      picked(reduction, pick, none, in(a, 0), out(a, 0), first, count);
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> broadcastToKernel(const Operation& o, const Processor& cpu) {
  const Broadcast places(o);
  const auto run = [cpu, places](const KernelArguments& a) {
    forElements(cpu, places.elements(), kCopiedWork, [&](int64_t first, int64_t count) {
      places.forRange(
          first, count, in(a, 0), in(a, 0), out(a, 0),
          [](const float* x, const float*, float* y, int64_t n) { std::copy_n(x, n, y); });
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

// NaN is never the largest, as on TensorFlow's CPU; NumPy would return the first NaN. Without a
// number above -infinity the result is 0.
int64_t largestOf(const float* from, int64_t length, int64_t stride) {
  int64_t place = 0;
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t k = 0; k < length; ++k) {
    if (!(from[k * stride] > largest)) continue;
    largest = from[k * stride];
    place = k;
  }
  return place;
}

std::unique_ptr<Kernel> argMaxKernel(const Operation& o, const Processor& cpu) {
  const Shape& x = o.input_specs[0].shape;
  const auto axis = static_cast<int>(o.attributeOr<int64_t>("axis", 0));
  int64_t inner = 1;
  for (int i = axis + 1; i < x.rank(); ++i) inner *= x.dim(i);
  const auto run = [cpu, inner, length = x.dim(axis),
                    n = o.output_specs[0].shape.elements()](const KernelArguments& a) {
    cpu.forRanges(n, saturatedProduct({length, kCopiedWork}), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        out<int64_t>(a, 0)[i] =
            largestOf(in(a, 0) + i / inner * inner * length + i % inner, length, inner);
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

}  // namespace

void addReductionKernels(KernelTable& table, const Processor& cpu) {
  const auto add = [&](const char* op, auto factory) {
    table.add(op, DeviceType::kCpu, [cpu, factory](const Operation& o) { return factory(o, cpu); });
  };
  add("Sum", [](const Operation& o, const Processor& p) { return reduce(o, p, false); });
  add("Mean", [](const Operation& o, const Processor& p) {
    const bool is_of_all = o.attributeOr<Shape>("axes", {}).rank() == 0;
    return is_of_all ? meanOfAll(o, vectorLoops(p.isa)) : reduce(o, p, true);
  });
  add("Max", [](const Operation& o, const Processor& p) { return extreme(o, p, true); });
  add("Min", [](const Operation& o, const Processor& p) { return extreme(o, p, false); });
  add("BroadcastTo", broadcastToKernel);
  add("ArgMax", argMaxKernel);
}

}  // namespace dtf::runtime
