#pragma once

// Maps elements of a tensor to other tensors: parts, permutations, and repetitions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/error.h"
#include "gpu/operation.h"
#include "gpu/portable.h"

namespace dtf::gpu {

// The places of element i of a dense tensor in each of `Tensors` others. Value type, passed to the
// device.
template <size_t Tensors>
struct Strided {
  static constexpr int kRankMax = 8;
  struct Axis {
    int64_t size = 1;
    int64_t strides[Tensors] = {};  // in the others
  };
  struct Places {
    int64_t of[Tensors] = {};
  };
  int rank = 0;
  Axis axes[kRankMax];  // the innermost one first

  // Avoids a division for the outermost axis: most tensors have one or two.
  DTF_HOST_DEVICE Places at(int64_t i) const {
    Places places;
    int axis = 0;
    for (; axis + 1 < rank; ++axis) {
      const int64_t rest = i / axes[axis].size;
      add(places, axis, i - rest * axes[axis].size);
      i = rest;
    }
    add(places, axis, i);
    return places;
  }

 private:
  DTF_HOST_DEVICE void add(Places& places, int axis, int64_t steps) const {
    for (size_t t = 0; t < Tensors; ++t) places.of[t] += steps * axes[axis].strides[t];
  }
};

inline std::vector<int64_t> denseStrides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// Returns the strides of x, repeated to `dims` as in common/graph/shape_functions.h, broadcast().
inline std::vector<int64_t> repeatedStrides(const TensorSpec& x, const std::vector<int64_t>& dims) {
  const std::vector<int64_t> dense = denseStrides(x.dims);
  std::vector<int64_t> strides(dims.size(), 0);
  for (size_t back = 1; back <= dense.size(); ++back)
    if (x.dims[dense.size() - back] != 1) strides[dims.size() - back] = dense[dense.size() - back];
  return strides;
}

// `strides`: of each other tensor, by the dimensions `dims`. Merges neighbouring dimensions that
// are contiguous in all of them.
// Errors: PluginError kBadConfig if more than kRankMax remain.
template <size_t Tensors>
Strided<Tensors> stridedOf(const Operation& o, const std::vector<int64_t>& dims,
                           const std::array<std::vector<int64_t>, Tensors>& strides) {
  Strided<Tensors> made;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    typename Strided<Tensors>::Axis next = {dims[d], {}};
    auto* const last = made.rank == 0 ? nullptr : &made.axes[made.rank - 1];
    bool goes_on = last != nullptr;
    for (size_t t = 0; t < Tensors; ++t) {
      next.strides[t] = strides[t][d];
      goes_on = goes_on && next.strides[t] == last->strides[t] * last->size;
    }
    if (goes_on) {
      last->size *= next.size;
      continue;
    }
    if (made.rank == made.kRankMax)
      throw PluginError(DTF_PLUGIN_BAD_CONFIG,
                        "Node '" + o.name + "': " + o.op + " has no GPU kernel for more than " +
                            std::to_string(made.kRankMax) + " dimensions. Place it on a CPU.");
    made.axes[made.rank++] = next;
  }
  return made;
}

}  // namespace dtf::gpu
