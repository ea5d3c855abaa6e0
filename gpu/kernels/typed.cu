// Comparisons and casts for tensors of any type; the semantics are in
// common/graph/standard_math_ops.cc.

#include <limits>

#include "gpu/element_kernels.h"

namespace dtf::gpu {
namespace {

struct LessOf {
  template <class T>
  DTF_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return a < b ? 1 : 0;
  }
};
struct LessEqualOf {
  template <class T>
  DTF_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return a <= b ? 1 : 0;
  }
};
struct EqualOf {
  template <class T>
  DTF_HOST_DEVICE uint8_t operator()(T a, T b) const {
    return a == b ? 1 : 0;
  }
};

// Calls f(a T) with the C++ type of `type`, one of `o`'s.
template <class F>
std::unique_ptr<Kernel> withType(const Operation& o, Type type, const F& f) {
  switch (type) {
    case Type::kFloat32:
      return f(float{});
    case Type::kUInt8:
      return f(uint8_t{});
    case Type::kInt32:
      return f(int32_t{});
    case Type::kInt64:
      return f(int64_t{});
    case Type::kBFloat16:
      break;
  }
  throw PluginError(DTF_PLUGIN_INTERNAL,
                    "Node '" + o.name + "': " + o.op + " has no GPU kernel for bfloat16.");
}

template <class F>
std::unique_ptr<Kernel> comparison(const Operation& o) {
  return withType(o, o.inputs[0].type,
                  [&](auto x) { return make<BroadcastKernel<F, decltype(x), uint8_t>>(o); });
}

// Constants: kernels can't call numeric_limits' functions.
template <class T>
struct LimitsOf {
  static constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
};
template <class From, class To>
struct CastOf {
  DTF_HOST_DEVICE To operator()(From x) const {
    if constexpr (std::is_same_v<To, float>) {
      return static_cast<float>(x);
    } else if constexpr (std::is_same_v<From, float>) {
      constexpr To kLeast = LimitsOf<To>::kLeast, kMost = LimitsOf<To>::kMost;
      if (x != x) return 0;
      if (x <= static_cast<float>(kLeast)) return kLeast;
      return x >= static_cast<float>(kMost) ? kMost : static_cast<To>(x);
    } else {
      constexpr int64_t kLeast = LimitsOf<To>::kLeast, kMost = LimitsOf<To>::kMost;
      const int64_t wide = x;
      return static_cast<To>(wide < kLeast ? kLeast : wide > kMost ? kMost : wide);
    }
  }
};

std::unique_ptr<Kernel> cast(const Operation& o) {
  return withType(o, o.inputs[0].type, [&](auto x) {
    return withType(o, o.outputs[0].type, [&](auto y) {
      using From = decltype(x);
      using To = decltype(y);
      return make<UnaryKernel<CastOf<From, To>, From, To>>(o);
    });
  });
}

}  // namespace

void addTypedKernels(KernelTable& table) {
  table["Less"] = comparison<LessOf>;
  table["LessEqual"] = comparison<LessEqualOf>;
  table["Equal"] = comparison<EqualOf>;
  table["Cast"] = cast;
}

}  // namespace dtf::gpu
