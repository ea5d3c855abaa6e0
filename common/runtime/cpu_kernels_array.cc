// Parts of tensors, and rows of tables; the semantics are in graph/standard_array_ops.cc.

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "common/base/check.h"
#include "common/runtime/cpu_kernels_internal.h"

namespace dtf::runtime {
namespace {

std::vector<int64_t> stridesOf(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * shape.dims()[i];
  return strides;
}

// The offsets of runs of elements in a tensor that is not read in its own order. They are computed,
// not stored: there may be one for each element, in memory that no plan counts.
class RunOffsets {
 public:
  explicit RunOffsets(int64_t first) : first_(first) {}

  // Adds an axis inside of the earlier ones. An axis of one element changes nothing.
  void addAxis(int64_t size, int64_t stride) {
    if (size == 1) return;
    axes_.push_back({size, stride});
    count_ *= size;
    DTF_CHECK(axes_.size() <= kAxesMax);
  }

  int64_t count() const { return count_; }

  // Calls f(run, its offset) for the runs [begin, end), in order.
  template <class F>
  void forEach(int64_t begin, int64_t end, const F& f) const {
    if (begin >= end)
      return;  // a tensor without elements has an axis of size 0, and nothing can be divided by it
    std::array<int64_t, kAxesMax> at;  // one position per axis, like an odometer
    int64_t offset = first_, rest = begin;
    for (size_t i = axes_.size(); i-- > 0;) {
      at[i] = rest % axes_[i].size;
      rest /= axes_[i].size;
      offset += at[i] * axes_[i].stride;
    }
    for (int64_t run = begin; run < end; ++run) {
      f(run, offset);
      for (size_t i = axes_.size(); i-- > 0;) {
        offset += axes_[i].stride;
        if (++at[i] < axes_[i].size) break;
        offset -= axes_[i].stride * axes_[i].size;
        at[i] = 0;
      }
    }
  }

 private:
  // With two elements or more each, more axes would exceed int64_t.
  static constexpr size_t kAxesMax = 63;
  struct Axis {
    int64_t size = 1, stride = 0;
  };

  std::vector<Axis> axes_;  // the innermost one last
  int64_t first_;
  int64_t count_ = 1;
};

// Copies between a tensor and a part of it: finds runs of `width` floats that are adjacent in both.
// Prepared once.
class Runs {
 public:
  // `part` starts at `begin` of `whole`, in each dimension.
  Runs(const Shape& part, const Shape& whole, const std::vector<int64_t>& begin)
      : offsets_(part.elements() == 0 ? 0 : firstOf(whole, begin)) {
    if (part.elements() == 0) {
      offsets_.addAxis(0, 0);
      return;
    }
    int axis = part.rank();
    while (axis > 0) {  // complete dimensions form one run with the inner ones
      width_ *= part.dim(--axis);
      if (part.dim(axis) != whole.dim(axis)) break;
    }
    const std::vector<int64_t> strides = stridesOf(whole);
    for (int i = 0; i < axis; ++i) offsets_.addAxis(part.dim(i), strides[static_cast<size_t>(i)]);
  }

  // Copies the part to its place in the whole, or back.
  void copyTo(const Processor& cpu, const float* part, float* whole) const {
    forEach(cpu, [&](int64_t at, int64_t offset, size_t bytes) {
      std::memcpy(whole + offset, part + at, bytes);
    });
  }
  void copyFrom(const Processor& cpu, const float* whole, float* part) const {
    forEach(cpu, [&](int64_t at, int64_t offset, size_t bytes) {
      std::memcpy(part + at, whole + offset, bytes);
    });
  }

 private:
  static int64_t firstOf(const Shape& whole, const std::vector<int64_t>& begin) {
    const std::vector<int64_t> strides = stridesOf(whole);
    return std::inner_product(strides.begin(), strides.end(), begin.begin(), int64_t{0});
  }

  // f(offset in the part, offset in the whole, bytes)
  template <class F>
  void forEach(const Processor& cpu, const F& f) const {
    const size_t bytes = static_cast<size_t>(width_) * sizeof(float);
    cpu.forRanges(offsets_.count(), width_ * kCopiedWork, [&](int64_t begin, int64_t end, int) {
      offsets_.forEach(begin, end,
                       [&](int64_t run, int64_t offset) { f(run * width_, offset, bytes); });
    });
  }

  int64_t width_ = 1;
  RunOffsets offsets_;  // in the whole
};

std::unique_ptr<Kernel> concatKernel(const Operation& o, const Processor& cpu) {
  const auto axis = static_cast<size_t>(o.attributeOr<int64_t>("axis", 0));
  const Shape& whole = o.output_specs[0].shape;
  std::vector<int64_t> begin(static_cast<size_t>(whole.rank()));
  std::vector<Runs> parts;
  for (const graph::TensorSpec& input : o.input_specs) {
    parts.emplace_back(input.shape, whole, begin);
    begin[axis] += input.shape.dims()[axis];
  }
  const auto run = [cpu, parts = std::move(parts)](const KernelArguments& a) {
    for (size_t i = 0; i < parts.size(); ++i) parts[i].copyTo(cpu, in(a, i), out(a, 0));
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> sliceKernel(const Operation& o, const Processor& cpu) {
  const Runs runs(o.output_specs[0].shape, o.input_specs[0].shape,
                  o.attributeOr<Shape>("begin", {}).dims());
  const auto run = [cpu, runs](const KernelArguments& a) {
    runs.copyFrom(cpu, in(a, 0), out(a, 0));
  };
  return makeKernel(run, kOverwritesNothing);
}

std::unique_ptr<Kernel> padKernel(const Operation& o, const Processor& cpu) {
  const Shape& whole = o.output_specs[0].shape;
  const Runs runs(o.input_specs[0].shape, whole, o.attributeOr<Shape>("before", {}).dims());
  const auto run = [cpu, runs, n = whole.elements()](const KernelArguments& a) {
    forElements(cpu, n, kCopiedWork,
                [&](int64_t first, int64_t count) { std::fill_n(out(a, 0) + first, count, 0.0f); });
    runs.copyTo(cpu, in(a, 0), out(a, 0));
  };
  return makeKernel(run, kOverwritesNothing);
}

// One of x's dimensions, at its position in the output.
struct Moved {
  int64_t size, stride;  // stride: in x
};

// Writes rows of the output whose elements are apart in x. Takes several rows at a time, to read x
// in whole cache lines, and few columns, so that the next lines are near.
void transposeRows(const float* x, int64_t rows, const Moved& row, const Moved& column, float* y) {
  constexpr int64_t kRows = 16, kColumns = 64;
  for (int64_t left = 0; left < column.size; left += kColumns) {
    const int64_t right = std::min(left + kColumns, column.size);
    for (int64_t top = 0; top < rows; top += kRows) {
      const int64_t height = std::min(kRows, rows - top);
      const float* const from = x + top * row.stride;
      float* const to = y + top * column.size;
      for (int64_t j = left; j < right; ++j)
        for (int64_t i = 0; i < height; ++i)
          to[i * column.size + j] = from[i * row.stride + j * column.stride];
    }
  }
}

// For transposes that move the last dimension of x. `outer`: offsets in x for all but the last two
// moved dimensions.
std::unique_ptr<Kernel> transposeElements(const Processor& cpu, const RunOffsets& outer,
                                          const Moved& row, const Moved& column) {
  const auto run = [cpu, outer, row, column](const KernelArguments& a) {
    cpu.forRanges(outer.count() * row.size, column.size * kCopiedWork,
                  [&](int64_t begin, int64_t end, int) {
                    while (begin < end) {
                      const int64_t matrix = begin / row.size, first = begin % row.size;
                      const int64_t rows = std::min(row.size - first, end - begin);
                      outer.forEach(matrix, matrix + 1, [&](int64_t, int64_t offset) {
                        transposeRows(in(a, 0) + offset + first * row.stride, rows, row, column,
                                      out(a, 0) + begin * column.size);
                      });
                      begin += rows;
                    }
                  });
  };
  return makeKernel(run, kOverwritesNothing);
}

// Last dimensions that stay last form runs that are adjacent in x and in the output.
std::unique_ptr<Kernel> transposeKernel(const Operation& o, const Processor& cpu) {
  const Shape& x = o.input_specs[0].shape;
  const Shape permutation = o.attributeOr<Shape>("permutation", {});
  int64_t width = 1;         // of a run of elements
  std::vector<Moved> moved;  // dimensions that are not in a run, in the order of the output
  if (x.elements() == 0) {
    moved.push_back({0, 0});
  } else {
    int last = x.rank();
    while (last > 0 && permutation.dim(last - 1) == last - 1) width *= x.dim(--last);
    const std::vector<int64_t> strides = stridesOf(x);
    for (int i = 0; i < last; ++i) {
      const auto from = static_cast<size_t>(permutation.dim(i));
      if (x.dims()[from] > 1) moved.push_back({x.dims()[from], strides[from]});
    }
  }
  const bool by_element = width == 1 && moved.size() >= 2;
  RunOffsets offsets(0);  // in x
  for (size_t i = 0; i + (by_element ? 2 : 0) < moved.size(); ++i)
    offsets.addAxis(moved[i].size, moved[i].stride);
  if (by_element) return transposeElements(cpu, offsets, moved[moved.size() - 2], moved.back());
  const auto run = [cpu, width, offsets](const KernelArguments& a) {
    cpu.forRanges(offsets.count(), width * kCopiedWork, [&](int64_t begin, int64_t end, int) {
      offsets.forEach(begin, end, [&](int64_t i, int64_t offset) {
        std::copy_n(in(a, 0) + offset, width, out(a, 0) + i * width);
      });
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

int64_t rowWidth(const Shape& table) {
  const std::vector<int64_t>& dims = table.dims();
  return std::accumulate(dims.begin() + 1, dims.end(), int64_t{1}, std::multiplies<>());
}

std::unique_ptr<Kernel> gatherKernel(const Operation& o, const Processor& cpu) {
  const Shape& table = o.input_specs[0].shape;
  const LabelReader indices(o, 1, table.dim(0), LabelReader::Kind::kIndices);
  const auto run = [cpu, indices, n = o.input_specs[1].shape.elements(),
                    width = rowWidth(table)](const KernelArguments& a) {
    const int32_t* const row = indices.read(a.inputs[1], a.workspace);
    cpu.forRanges(n, std::max<int64_t>(1, width) * kCopiedWork,
                  [&](int64_t begin, int64_t end, int) {
                    for (int64_t i = begin; i < end; ++i)
                      std::copy_n(in(a, 0) + row[i] * width, width, out(a, 0) + i * width);
                  });
  };
  return makeKernel(run, kOverwritesNothing, indices.workspaceBytes());
}

KernelFactory segmentSum(const VectorLoops& loops) {
  return [add = loops.add](const Operation& o) {
    const Shape& table = o.output_specs[0].shape;
    const LabelReader indices(o, 1, table.dim(0), LabelReader::Kind::kIndices);
    const auto run = [add, indices, all = table.elements(), n = o.input_specs[1].shape.elements(),
                      width = rowWidth(table)](const KernelArguments& a) {
      const int32_t* const row = indices.read(a.inputs[1], a.workspace);
      std::fill_n(out(a, 0), all, 0.0f);
      for (int64_t i = 0; i < n; ++i) {
        float* const sum = out(a, 0) + row[i] * width;
        add(sum, in(a, 0) + i * width, sum, width);
      }
    };
    return makeKernel(run, kOverwritesNothing, indices.workspaceBytes());
  };
}

// Works in place if the output is the table itself. Checks all indices before it changes a row.
template <class Change>
KernelFactory scatter(const Processor& cpu, Change change) {
  return [cpu, change](const Operation& o) {
    const Shape& table = o.output_specs[0].shape;
    const LabelReader indices(o, 1, table.dim(0), LabelReader::Kind::kIndices);
    const auto run = [cpu, change, indices, all = table.elements(),
                      n = o.input_specs[1].shape.elements(),
                      width = rowWidth(table)](const KernelArguments& a) {
      const int32_t* const row = indices.read(a.inputs[1], a.workspace);
      if (a.outputs[0] != a.inputs[0]) {
        forElements(cpu, all, kCopiedWork, [&](int64_t first, int64_t count) {
          std::copy_n(in(a, 0) + first, count, out(a, 0) + first);
        });
      }
      for (int64_t i = 0; i < n; ++i)
        change(out(a, 0) + row[i] * width, in(a, 2) + i * width, width);
    };
    return makeKernel(
        run, [](int, int input) { return input == 0; }, indices.workspaceBytes());
  };
}

}  // namespace

void addArrayKernels(KernelTable& table, const Processor& cpu) {
  const auto add = [&](const char* op, auto factory) {
    table.add(op, DeviceType::kCpu, [cpu, factory](const Operation& o) { return factory(o, cpu); });
  };
  add("Concat", concatKernel);
  add("Slice", sliceKernel);
  add("Pad", padKernel);
  add("Transpose", transposeKernel);
  add("Gather", gatherKernel);
  const VectorLoops& loops = vectorLoops(cpu.isa);
  table.add("UnsortedSegmentSum", DeviceType::kCpu, segmentSum(loops));
  table.add("ScatterAdd", DeviceType::kCpu,
            scatter(cpu, [add = loops.add](float* row, const float* update, int64_t width) {
              add(row, update, row, width);
            }));
  table.add("ScatterUpdate", DeviceType::kCpu,
            scatter(cpu, [](float* row, const float* update, int64_t width) {
              std::copy_n(update, width, row);
            }));
}

}  // namespace dtf::runtime
