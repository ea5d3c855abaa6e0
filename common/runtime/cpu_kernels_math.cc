// Arithmetic by element and by row; the semantics are in graph/standard_math_ops.cc.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "common/runtime/broadcast.h"
#include "common/runtime/cpu_kernels.h"
#include "common/runtime/cpu_kernels_internal.h"

namespace dtf::runtime {
namespace {

int64_t outputElements(const Operation& operation) {
  return operation.output_specs[0].shape.elements();
}

// Copies the input `from`.
KernelFactory copy(const Processor& cpu, size_t from = 0) {
  return [cpu, from](const Operation& o) {
    const int64_t element = dtypeBytes(o.output_specs[0].dtype);
    const auto run = [cpu, from, element, n = outputElements(o)](const KernelArguments& a) {
      if (a.outputs[0] == a.inputs[from]) return;
      forElements(cpu, n, kCopiedWork, [&](int64_t first, int64_t count) {
        if (count == 0) return;
        std::memcpy(a.outputs[0] + first * element, a.inputs[from] + first * element,
                    static_cast<size_t>(count * element));
      });
    };
    return makeKernel(run, kOverwritesAny);
  };
}

// A loop over elements and its work per element.
template <class Loop>
struct Costed {
  Loop loop;
  int64_t work;
};
template <class Loop>
Costed<Loop> cheap(Loop loop) {
  return {loop, kCopiedWork};
}
template <class Loop>
Costed<Loop> dear(Loop loop) {
  return {loop, kFunctionWork};
}

// y[i] = f(x[i]...). The compiler vectorises a loop with a known count whose stores can't change
// later loads: y is none of the inputs.
template <class Y, class F, class... X>
void mapElements(int64_t n, Y* __restrict y, const F& f, const X* __restrict... x) {
  constexpr int64_t kBlock = 64;
  int64_t first = 0;
  for (; first + kBlock <= n; first += kBlock)
    for (int64_t i = 0; i < kBlock; ++i) y[first + i] = f(x[first + i]...);
  for (; first < n; ++first) y[first] = f(x[first]...);
}

template <class T, class Compare>
std::unique_ptr<Kernel> comparisonOf(const Processor& cpu, const Operation& o, Compare compare) {
  const auto loop = [compare](const T* x, const T* y, uint8_t* to, int64_t n) {
    mapElements(
        n, to, [compare](T a, T b) -> uint8_t { return compare(a, b) ? 1 : 0; }, x, y);
  };
  const Broadcast places(o);
  const auto run = [cpu, places, loop](const KernelArguments& a) {
    forElements(cpu, places.elements(), kCopiedWork, [&](int64_t first, int64_t count) {
      places.forRange(first, count, in<T>(a, 0), in<T>(a, 1), out<uint8_t>(a, 0), loop);
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

template <class Compare>
KernelFactory comparison(const Processor& cpu, Compare compare) {
  return [cpu, compare](const Operation& o) {
    switch (o.input_specs[0].dtype) {
      case DType::kFloat32:
        return comparisonOf<float>(cpu, o, compare);
      case DType::kUInt8:
        return comparisonOf<uint8_t>(cpu, o, compare);
      case DType::kInt32:
        return comparisonOf<int32_t>(cpu, o, compare);
      case DType::kInt64:
        return comparisonOf<int64_t>(cpu, o, compare);
      case DType::kBFloat16:
        break;
    }
    DTF_CHECK(false);
    return std::unique_ptr<Kernel>();
  };
}

KernelFactory unary(const Processor& cpu, Costed<VectorLoops::Unary> f) {
  return [cpu, f](const Operation& o) {
    const auto run = [cpu, f, n = outputElements(o)](const KernelArguments& a) {
      forElements(cpu, n, f.work, [&](int64_t first, int64_t count) {
        f.loop(in(a, 0) + first, out(a, 0) + first, count);
      });
    };
    return makeKernel(run, kOverwritesAny);
  };
}

KernelFactory binary(const Processor& cpu, Costed<VectorLoops::Binary> f) {
  return [cpu, f](const Operation& o) {
    const auto run = [cpu, f, n = outputElements(o)](const KernelArguments& a) {
      forElements(cpu, n, f.work, [&](int64_t first, int64_t count) {
        f.loop(in(a, 0) + first, in(a, 1) + first, out(a, 0) + first, count);
      });
    };
    return makeKernel(run, kOverwritesAny);
  };
}

// Like binary(), with broadcasting.
KernelFactory broadcasting(const Processor& cpu, Costed<VectorLoops::Binary> f) {
  return [cpu, f](const Operation& o) {
    const Broadcast places(o);
    if (places.isPlain()) return binary(cpu, f)(o);
    const auto run = [cpu, f, places](const KernelArguments& a) {
      forElements(cpu, places.elements(), f.work, [&](int64_t first, int64_t count) {
        places.forRange(first, count, in(a, 0), in(a, 1), out(a, 0), f.loop);
      });
    };
    return makeKernel(run, kOverwritesNothing);
  };
}

// Uses C's pow(), so that every instruction set gives the same bits.
void powLoop(const float* a, const float* b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<float>(std::pow(static_cast<double>(a[i]), static_cast<double>(b[i])));
}

// Passes the attribute `key` to the loop.
KernelFactory unaryWith(const Processor& cpu, void (*loop)(const float*, float, float*, int64_t),
                        const char* key, double fallback = 0) {
  return [cpu, loop, key, fallback](const Operation& o) {
    const auto number = static_cast<float>(o.attributeOr<double>(key, fallback));
    const auto run = [cpu, loop, number, n = outputElements(o)](const KernelArguments& a) {
      forElements(cpu, n, kCopiedWork, [&](int64_t first, int64_t count) {
        loop(in(a, 0) + first, number, out(a, 0) + first, count);
      });
    };
    return makeKernel(run, kOverwritesAny);
  };
}

KernelFactory binaryWith(const Processor& cpu,
                         void (*loop)(const float*, const float*, float, float*, int64_t),
                         const char* key) {
  return [cpu, loop, key](const Operation& o) {
    const auto number = static_cast<float>(o.attributeOr<double>(key, 0));
    const auto run = [cpu, loop, number, n = outputElements(o)](const KernelArguments& a) {
      forElements(cpu, n, kCopiedWork, [&](int64_t first, int64_t count) {
        loop(in(a, 0) + first, in(a, 1) + first, number, out(a, 0) + first, count);
      });
    };
    return makeKernel(run, kOverwritesAny);
  };
}

KernelFactory normalise(const Processor& cpu, const VectorLoops& loops) {
  return [cpu, loop = loops.normalise](const Operation& o) {
    const auto scale = static_cast<float>(o.attributeOr<double>("scale", 1));
    const auto run = [cpu, loop, scale, n = outputElements(o)](const KernelArguments& a) {
      forElements(cpu, n, kCopiedWork, [&](int64_t first, int64_t count) {
        loop(in<uint8_t>(a, 0) + first, scale, out(a, 0) + first, count);
      });
    };
    return makeKernel(run, kOverwritesNothing);
  };
}

// Adds from left to right. Reads the third and later terms after it has written the output.
KernelFactory addN(const Processor& cpu, const VectorLoops& loops) {
  return [cpu, add = loops.add](const Operation& o) -> std::unique_ptr<Kernel> {
    const auto terms = static_cast<int64_t>(o.input_specs.size());
    if (terms == 1) return copy(cpu)(o);
    const auto run = [cpu, add, terms, n = outputElements(o)](const KernelArguments& a) {
      forElements(cpu, n, terms * kCopiedWork, [&](int64_t first, int64_t count) {
        float* const sum = out(a, 0) + first;
        add(in(a, 0) + first, in(a, 1) + first, sum, count);
        for (size_t i = 2; i < a.inputs.size(); ++i) add(sum, in(a, i) + first, sum, count);
      });
    };
    return makeKernel(run, [](int, int input) { return input < 2; });
  };
}

KernelFactory meanGrad(const Processor& cpu) {
  return [cpu](const Operation& o) {
    const auto run = [cpu, n = outputElements(o)](const KernelArguments& a) {
      const float value = *in(a, 0) / static_cast<float>(n);
      forElements(cpu, n, kCopiedWork, [&](int64_t first, int64_t count) {
        std::fill_n(out(a, 0) + first, count, value);
      });
    };
    return makeKernel(run, kOverwritesNothing);
  };
}

// Ops on rows with two inputs. For each row, an input has a row, a number, or nothing.
enum class PerRow : uint8_t { kRow, kNumber, kNothing };
int64_t inputOffset(PerRow has, int64_t row, int64_t columns) {
  return has == PerRow::kRow ? row * columns : has == PerRow::kNumber ? row : 0;
}

using RowLoop = void (*)(const float*, const float*, float*, int64_t, int64_t);
template <class Overwrites>
KernelFactory byRow(const Processor& cpu, RowLoop loop, PerRow first_has, PerRow second_has,
                    Overwrites overwrites) {
  return [=](const Operation& o) {
    const auto run = [=, n = Rows(o.output_specs[0].shape)](const KernelArguments& a) {
      forRows(cpu, n, kCopiedWork, [&](int64_t row, int64_t rows) {
        loop(in(a, 0) + inputOffset(first_has, row, n.columns),
             in(a, 1) + inputOffset(second_has, row, n.columns), out(a, 0) + row * n.columns, rows,
             n.columns);
      });
    };
    return makeKernel(run, overwrites);
  };
}

// Each column is one sum in the order of the rows, so the work is split by columns.
KernelFactory biasAddGrad(const Processor& cpu, const VectorLoops& loops) {
  return [cpu, loop = loops.biasAddGrad](const Operation& o) {
    const auto run = [cpu, loop, n = Rows(o.input_specs[0].shape)](const KernelArguments& a) {
      forColumns(cpu, n, kCopiedWork, [&](int64_t begin, int64_t columns) {
        // nullptr: an empty tensor has no address
        const float* const dy = n.rows > 0 ? in(a, 0) + begin : nullptr;
        loop(dy, n.columns, out(a, 0) + begin, n.rows, columns);
      });
    };
    return makeKernel(run, kOverwritesNothing);
  };
}

template <class From, class To>
To castTo(From x) {
  if constexpr (std::is_same_v<To, float>) {
    return static_cast<float>(x);
  } else if constexpr (std::is_same_v<From, float>) {
    constexpr To kLeast = std::numeric_limits<To>::min(), kMost = std::numeric_limits<To>::max();
    if (!(x == x)) return 0;  // NOLINT(misc-redundant-expression): NaN
    if (x <= static_cast<float>(kLeast)) return kLeast;
    return x >= static_cast<float>(kMost) ? kMost : static_cast<To>(x);
  } else {
    const auto least = static_cast<int64_t>(std::numeric_limits<To>::min());
    const auto most = static_cast<int64_t>(std::numeric_limits<To>::max());
    return static_cast<To>(std::clamp<int64_t>(x, least, most));
  }
}

template <class From, class To>
std::unique_ptr<Kernel> castKernel(const Processor& cpu, int64_t n) {
  const auto run = [cpu, n](const KernelArguments& a) {
    forElements(cpu, n, kCopiedWork, [&](int64_t first, int64_t count) {
      mapElements(
          count, out<To>(a, 0) + first, [](From x) { return castTo<From, To>(x); },
          in<From>(a, 0) + first);
    });
  };
  return makeKernel(run, kOverwritesNothing);
}

// Calls f(a T) with the C++ type of `dtype`.
template <class F>
auto withType(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(float{});
    case DType::kUInt8:
      return f(uint8_t{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kBFloat16:
      break;
  }
  DTF_CHECK(false);
  return f(float{});
}

KernelFactory cast(const Processor& cpu) {
  return [cpu](const Operation& o) {
    return withType(o.input_specs[0].dtype, [&](auto from) {
      return withType(o.output_specs[0].dtype, [&](auto to) {
        return castKernel<decltype(from), decltype(to)>(cpu, outputElements(o));
      });
    });
  };
}

KernelFactory select(const Processor& cpu) {
  return [cpu](const Operation& o) {
    const auto run = [cpu, n = outputElements(o)](const KernelArguments& a) {
      const uint8_t* const mask = in<uint8_t>(a, 0);
      const float *const x = in(a, 1), *const y = in(a, 2);
      float* const to = out(a, 0);
      forElements(cpu, n, kCopiedWork, [=](int64_t first, int64_t count) {
        for (int64_t i = first; i < first + count; ++i) to[i] = mask[i] != 0 ? x[i] : y[i];
      });
    };
    return makeKernel(run, [](int, int input) { return input > 0; });
  };
}

}  // namespace

std::unique_ptr<Kernel> meanOfAll(const Operation& o, const VectorLoops& loops) {
  const auto run = [sum = loops.sum,
                    n = o.input_specs[0].shape.elements()](const KernelArguments& a) {
    *out(a, 0) = static_cast<float>(sum(in(a, 0), n) / static_cast<double>(n));
  };
  return makeKernel(run, kOverwritesNothing);
}

void addMathKernels(KernelTable& table, const Processor& cpu) {
  const VectorLoops& loops = vectorLoops(cpu.isa);
  const auto add = [&table](const char* op, KernelFactory factory) {
    table.add(op, DeviceType::kCpu, std::move(factory));
  };
  add("Identity", copy(cpu));
  add("StopGradient", copy(cpu));
  add("Reshape", copy(cpu));
  add("Normalise", normalise(cpu, loops));
  add("Add", broadcasting(cpu, cheap(loops.add)));
  add("Sub", broadcasting(cpu, cheap(loops.sub)));
  add("Less", comparison(cpu, std::less<>()));
  add("LessEqual", comparison(cpu, std::less_equal<>()));
  add("Equal", comparison(cpu, std::equal_to<>()));
  add("Assign", copy(cpu, 1));
  add("AssignAdd", binary(cpu, cheap(loops.add)));
  add("AssignSub", binary(cpu, cheap(loops.sub)));
  add("Mul", broadcasting(cpu, cheap(loops.mul)));
  add("Div", broadcasting(cpu, cheap(loops.div)));
  add("Maximum", broadcasting(cpu, cheap(loops.maximum)));
  add("Minimum", broadcasting(cpu, cheap(loops.minimum)));
  add("SquaredDifference", broadcasting(cpu, cheap(loops.squaredDifference)));
  add("Pow", broadcasting(cpu, dear(VectorLoops::Binary{powLoop})));
  add("Exp", unary(cpu, dear(loops.exp)));
  add("Log", unary(cpu, dear(loops.log)));
  add("Sqrt", unary(cpu, cheap(loops.sqrt)));
  add("Rsqrt", unary(cpu, cheap(loops.rsqrt)));
  add("Select", select(cpu));
  add("Cast", cast(cpu));
  add("Scale", unaryWith(cpu, loops.scale, "factor", 1));
  add("AddN", addN(cpu, loops));
  add("MeanGrad", meanGrad(cpu));
  add("BiasAdd", byRow(cpu, loops.biasAdd, PerRow::kRow, PerRow::kNothing,
                       [](int, int input) { return input == 0; }));
  add("BiasAddGrad", biasAddGrad(cpu, loops));
  add("MulRows", byRow(cpu, loops.mulRows, PerRow::kNumber, PerRow::kRow,
                       [](int, int input) { return input == 1; }));
  add("Abs", unary(cpu, cheap(loops.abs)));
  add("AbsGrad", binary(cpu, cheap(loops.absGrad)));
  add("Relu6", unary(cpu, cheap(loops.relu6)));
  add("Relu6Grad", binary(cpu, cheap(loops.relu6Grad)));
  add("Elu", unary(cpu, dear(loops.elu)));
  add("EluGrad", binary(cpu, cheap(loops.eluGrad)));
  add("Silu", unary(cpu, dear(loops.silu)));
  add("SiluGrad", binary(cpu, dear(loops.siluGrad)));
  add("Softplus", unary(cpu, dear(loops.softplus)));
  add("SoftplusGrad", binary(cpu, dear(loops.softplusGrad)));
  add("LeakyRelu", unaryWith(cpu, loops.leakyRelu, "alpha"));
  add("LeakyReluGrad", binaryWith(cpu, loops.leakyReluGrad, "alpha"));
  add("Huber", unaryWith(cpu, loops.huber, "delta"));
  add("HuberGrad", binaryWith(cpu, loops.huberGrad, "delta"));
  add("Gelu", [cpu, &loops](const Operation& o) {
    const bool approximate = o.attributeOr<bool>("approximate", false);
    return unary(cpu, dear(approximate ? loops.geluApproximate : loops.gelu))(o);
  });
  add("GeluGrad", [cpu, &loops](const Operation& o) {
    const bool approximate = o.attributeOr<bool>("approximate", false);
    return binary(cpu, dear(approximate ? loops.geluApproximateGrad : loops.geluGrad))(o);
  });
  add("Relu", unary(cpu, cheap(loops.relu)));
  add("Sigmoid", unary(cpu, dear(loops.sigmoid)));
  add("Tanh", unary(cpu, dear(loops.tanh)));
  add("ReluGrad", binary(cpu, cheap(loops.reluGrad)));
  add("SigmoidGrad", binary(cpu, cheap(loops.sigmoidGrad)));
  add("TanhGrad", binary(cpu, cheap(loops.tanhGrad)));
  add("SigmoidCrossEntropyWithLogits", binary(cpu, dear(loops.sigmoidCrossEntropy)));
  add("SoftmaxGrad", byRow(cpu, loops.softmaxGrad, PerRow::kRow, PerRow::kRow, kOverwritesAny));
}

void registerCpuKernels(KernelTable& table, const Processor& cpu, const ConvolutionRule& rule) {
  addMathKernels(table, cpu);
  addReductionKernels(table, cpu);
  addRandomKernels(table, cpu);
  addNnKernels(table, cpu);
  addControlKernels(table, cpu);
  addArrayKernels(table, cpu);
  addNormKernels(table, cpu);
  addImageKernels(table, cpu, rule);
  addConvPoolKernels(table, cpu, rule);
  addMatMulKernel(table, cpu);
  addFusedKernels(table, cpu);
}

}  // namespace dtf::runtime
