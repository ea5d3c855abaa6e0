#pragma once

// Shared helpers of the files that implement cpu_kernels.h.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/runtime/convolution_ways.h"
#include "common/runtime/kernel.h"
#include "common/runtime/mixed_precision.h"
#include "common/runtime/processor.h"
#include "common/runtime/vector_loops.h"

namespace dtf::runtime {

void addMathKernels(KernelTable& table, const Processor& cpu);
void addReductionKernels(KernelTable& table, const Processor& cpu);
void addRandomKernels(KernelTable& table, const Processor& cpu);
void addNnKernels(KernelTable& table, const Processor& cpu);
void addImageKernels(KernelTable& table, const Processor& cpu, const ConvolutionRule& rule);
void addConvPoolKernels(KernelTable& table, const Processor& cpu, const ConvolutionRule& rule);
void addNormKernels(KernelTable& table, const Processor& cpu);
void addControlKernels(KernelTable& table, const Processor& cpu);
void addArrayKernels(KernelTable& table, const Processor& cpu);
void addMatMulKernel(KernelTable& table, const Processor& cpu);
void addFusedKernels(KernelTable& table, const Processor& cpu);

// Returns the processor for an operation's products: it rounds factors if usePrecision() set the
// attribute.
inline Processor processorOf(const Operation& o, const Processor& cpu) {
  return o.attributeOr<bool>(kRoundedFactors, false) ? cpu.rounding() : cpu;
}

struct Pooling;
// Computes the bias gradient of fusion.h's poolings: inputs dy and argmax, output 1. Split by
// channels.
void sumOpenGradients(const Processor& cpu, const Pooling& p, const KernelArguments& a);

template <class T = float>
const T* in(const KernelArguments& a, size_t index) {
  return reinterpret_cast<const T*>(a.inputs[index]);
}
template <class T = float>
T* out(const KernelArguments& a, size_t index) {
  return reinterpret_cast<T*>(a.outputs[index]);
}

// A tensor of at least one dimension as a matrix whose rows are its last dimension.
struct Rows {
  explicit Rows(const Shape& shape)
      : columns(shape.dim(shape.rank() - 1)), rows(columns == 0 ? 0 : shape.elements() / columns) {}
  int64_t columns, rows;
};

// Whole cache lines, and whole groups of Dropout's random numbers.
inline constexpr int64_t kElementGrain = 64;

// Calls f(first element, elements) for ranges that cover `n`; `work` is the work of an element.
template <class F>
void forElements(const Processor& cpu, int64_t n, int64_t work, const F& f) {
  cpu.forRanges(n, work, kElementGrain, Processor::kPartsEach,
                [&](int64_t begin, int64_t end, int) { f(begin, end - begin); });
}

// Calls f(first row, rows); `work` is the work of an element.
template <class F>
void forRows(const Processor& cpu, const Rows& all, int64_t work, const F& f) {
  cpu.forRanges(all.rows, std::max<int64_t>(1, all.columns) * work,
                [&](int64_t begin, int64_t end, int) { f(begin, end - begin); });
}

// Calls f(first column, columns) for whole cache lines; `work` is the work of an element.
template <class F>
void forColumns(const Processor& cpu, const Rows& all, int64_t work, const F& f) {
  constexpr int64_t kLineFloats = 16;
  cpu.forRanges(all.columns, std::max<int64_t>(1, all.rows) * work, kLineFloats, 1,
                [&](int64_t begin, int64_t end, int) { f(begin, end - begin); });
}

// A kernel that is one call of `f(arguments)`. `overwrites(output, input)`: see
// Kernel::canOverwrite; `way`, which must outlive it: Kernel::way. Threads, errors: as `f`.
template <class F, class Overwrites>
class LoopKernel final : public Kernel {
 public:
  LoopKernel(F f, Overwrites overwrites, size_t workspace_bytes, std::string_view way)
      : f_(std::move(f)), overwrites_(overwrites), workspace_bytes_(workspace_bytes), way_(way) {}
  void run(const KernelArguments& arguments) override { f_(arguments); }
  size_t workspaceBytes() const override { return workspace_bytes_; }
  std::string_view way() const override { return way_; }
  bool canOverwrite(int output, int input) const override { return overwrites_(output, input); }

 private:
  F f_;
  Overwrites overwrites_;
  size_t workspace_bytes_;
  std::string_view way_;
};

inline constexpr auto kOverwritesNothing = [](int, int) { return false; };
inline constexpr auto kOverwritesAny = [](int, int) { return true; };

template <class F, class Overwrites>
std::unique_ptr<Kernel> makeKernel(F f, Overwrites overwrites, size_t workspace_bytes = 0,
                                   std::string_view way = {}) {
  return std::make_unique<LoopKernel<F, Overwrites>>(std::move(f), overwrites, workspace_bytes,
                                                     way);
}

// Makes a kernel for the mean of all elements; cpu_kernels_math.cc.
std::unique_ptr<Kernel> meanOfAll(const Operation& o, const VectorLoops& loops);

// Labels or indices of uint8, int32 or int64 as checked int32. Value type; immutable.
class LabelReader {
 public:
  // The meaning of the numbers, for messages: classes of rows, or rows of a table.
  enum class Kind : uint8_t { kLabels, kIndices };

  // `input` is the index of the labels among the inputs; they must be in [0, classes).
  LabelReader(const Operation& operation, size_t input, int64_t classes, Kind kind = Kind::kLabels);

  size_t workspaceBytes() const { return static_cast<size_t>(count_) * sizeof(int32_t); }
  // Returns the labels, in place or in `workspace`.
  // Errors: kBadData with the node, the row and the label.
  const int32_t* read(const std::byte* labels, std::byte* workspace) const;

 private:
  template <class T>
  const int32_t* convert(const T* labels, int32_t* converted) const;

  std::string node_;
  Kind kind_;
  DType dtype_;
  int64_t count_;
  int64_t classes_;
};

}  // namespace dtf::runtime
