// Sums, means and extremes over dimensions; the semantics are in common/graph/standard_math_ops.cc.

#include <cmath>
#include <cstring>

#include "gpu/element_kernels.h"

namespace dtf::gpu {
namespace {

// A reduction: a total for each part of the elements, in any order, and the result of all totals.
struct MakeSum {
  using Total = double;
  using Result = float;
  double share;
  MakeSum(const Operation& o, int64_t elements)
      : share(o.op == "Mean" ? static_cast<double>(elements) : 1) {}
  DTF_HOST_DEVICE static double totalOf(float x, int64_t) { return static_cast<double>(x); }
  DTF_HOST_DEVICE static double both(double a, double b) { return a + b; }
  template <class T>
  DTF_HOST_DEVICE static double ofAll(const T& team, double total) {
    return team.sum(total);
  }
  DTF_HOST_DEVICE float result(double total) const { return static_cast<float>(total / share); }
};

// The total is the largest number with its place, as bits in the order of the numbers; of equal
// numbers the first is larger. As on the CPU, NaN is the least.
struct FindLargest {
  using Total = uint64_t;
  using Result = int64_t;
  FindLargest(const Operation& o, int64_t elements) {
    if (elements > int64_t{UINT32_MAX})
      throw PluginError(
          DTF_PLUGIN_BAD_CONFIG,
          "Node '" + o.name + "': ArgMax has no GPU kernel for 2^32 elements. Place it on a CPU.");
  }
  DTF_HOST_DEVICE static uint64_t totalOf(float x, int64_t i) {
    if (x != x) x = -INFINITY;
    if (x == 0) x = 0;  // -0 too
    uint32_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
    return uint64_t{bits} << 32 | (UINT32_MAX - static_cast<uint32_t>(i));
  }
  DTF_HOST_DEVICE static uint64_t both(uint64_t a, uint64_t b) { return a < b ? b : a; }
  template <class T>
  DTF_HOST_DEVICE static uint64_t ofAll(const T& team, uint64_t total) {
    return team.max(total);
  }
  DTF_HOST_DEVICE int64_t result(uint64_t total) const {
    return UINT32_MAX - static_cast<uint32_t>(total);
  }
};

// The total is the largest number as bits in the order of the numbers, NaN last, and 0 for no
// elements; the smallest number uses its negative.
template <bool IsLargest>
struct FindExtreme {
  using Total = uint64_t;
  using Result = float;
  FindExtreme(const Operation&, int64_t) {}
  DTF_HOST_DEVICE static uint64_t totalOf(float x, int64_t) {
    if (x != x) return 0xffc00000u;
    if (!IsLargest) x = -x;
    uint32_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  }
  DTF_HOST_DEVICE static uint64_t both(uint64_t a, uint64_t b) { return a < b ? b : a; }
  template <class T>
  DTF_HOST_DEVICE static uint64_t ofAll(const T& team, uint64_t total) {
    return team.max(total);
  }
  DTF_HOST_DEVICE float result(uint64_t total) const {
    float x = -INFINITY;
    const auto ordered = static_cast<uint32_t>(total);
    const uint32_t bits = (ordered >> 31) != 0 ? ordered & 0x7fffffffu : ~ordered;
    if (total != 0) memcpy(&x, &bits, sizeof x);
    return IsLargest ? x : -x;
  }
};

// The layout of the elements and the split of the work, from shapes alone. Neighbouring threads
// read neighbouring elements: if the innermost dimensions are kept, or few elements are reduced,
// each thread has its own result; otherwise a team has one. With few results, each is made of
// parts.
// Value type, passed to the device.
struct Reduction {
  Reduction(const Operation& o, const std::vector<int64_t>& axes) {
    const std::vector<int64_t>& x = o.inputs[0].dims;
    const std::vector<int64_t> strides = denseStrides(x);
    std::vector<bool> is_reduced(x.size(), axes.empty());
    for (const int64_t axis : axes) is_reduced[static_cast<size_t>(axis)] = true;
    std::vector<int64_t> dims[2], steps[2];  // of the kept dimensions, of the reduced ones
    for (size_t i = 0; i < x.size(); ++i) {
      dims[is_reduced[i] ? 1 : 0].push_back(x[i]);
      steps[is_reduced[i] ? 1 : 0].push_back(strides[i]);
      (is_reduced[i] ? elements : results) *= x[i];
    }
    kept = stridedOf<1>(o, dims[0], {steps[0]});
    reduced = stridedOf<1>(o, dims[1], {steps[1]});
    shareOut();
  }

  void shareOut() {
    constexpr int64_t kRunMin = 32, kTeamsWanted = 1024, kElementsOfTeam = 4096;
    constexpr int64_t kThreadsWanted = 64 * 1024, kElementsOfThread = 16;
    by_team = reduced.rank > 0 && reduced.axes[0].strides[0] == 1 && reduced.axes[0].size > kRunMin;
    const int64_t wanted = by_team ? kTeamsWanted : kThreadsWanted;
    const int64_t each = by_team ? kElementsOfTeam : kElementsOfThread;
    const int64_t useful = (elements + each - 1) / each;
    const int64_t of_result = wanted / (results < 1 ? 1 : results);
    parts = useful < of_result ? useful : of_result;
    if (parts < 1) parts = 1;
  }

  Strided<1> kept, reduced;
  int64_t results = 1, elements = 1;  // elements per result
  int64_t parts = 1;                  // per result
  bool by_team = false;
};

// Elements at equal distances.
struct EvenPlaces {
  static constexpr int kAtOnce = 8;
  int64_t stride;
  DTF_HOST_DEVICE int64_t operator()(int64_t i) const { return i * stride; }
};
struct StridedPlaces {
  static constexpr int kAtOnce = 4;
  const Strided<1>& strided;
  DTF_HOST_DEVICE int64_t operator()(int64_t i) const { return strided.at(i).of[0]; }
};

// Returns the total of elements first, first + step and so on. Loads several elements before it
// adds them, so that a thread doesn't wait for each.
template <class M, class Places>
DTF_HOST_DEVICE typename M::Total totalOf(const float* x, const Places& places, int64_t first,
                                          int64_t last, int64_t step) {
  constexpr int kAtOnce = Places::kAtOnce;
  typename M::Total total = 0;
  int64_t i = first;
  for (; i + (kAtOnce - 1) * step < last; i += kAtOnce * step) {
    float values[kAtOnce];
    for (int j = 0; j < kAtOnce; ++j) values[j] = x[places(i + j * step)];
    for (int j = 0; j < kAtOnce; ++j) total = M::both(total, M::totalOf(values[j], i + j * step));
  }
  for (; i < last; i += step) total = M::both(total, M::totalOf(x[places(i)], i));
  return total;
}

// `M`: MakeSum or a similar type. Work item i is part i / results of result i % results.
template <class M>
struct Reducing {
  M m;
  Reduction r;
  const float* x;
  typename M::Total* totals;  // [parts, results]
  typename M::Result* y;

  DTF_HOST_DEVICE typename M::Total total(int64_t result, int64_t first, int64_t last,
                                          int64_t step) const {
    const float* const from = x + r.kept.at(result).of[0];
    if (r.reduced.rank > 1) return totalOf<M>(from, StridedPlaces{r.reduced}, first, last, step);
    return totalOf<M>(from, EvenPlaces{r.reduced.axes[0].strides[0]}, first, last, step);
  }
  DTF_HOST_DEVICE void put(int64_t item, typename M::Total total) const {
    if (r.parts > 1) {
      totals[item] = total;
    } else {
      y[item] = m.result(total);
    }
  }
};
// A part has every parts-th element.
template <class M>
struct ReduceAt {
  Reducing<M> of;
  DTF_HOST_DEVICE void operator()(int64_t item) const {
    const int64_t part = item / of.r.results, result = item - part * of.r.results;
    of.put(item, of.total(result, part, of.r.elements, of.r.parts));
  }
};
// A part has neighbouring elements.
template <class M>
struct ReduceByTeamAt {
  Reducing<M> of;
  int64_t each;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t item) const {
    const int64_t part = item / of.r.results, result = item - part * of.r.results;
    const int64_t first = part * each, end = first + each;
    const int64_t last = end < of.r.elements ? end : of.r.elements;
    const auto mine = of.total(result, first + team.rank(), last, team.size());
    const auto total = M::ofAll(team, mine);
    if (team.rank() == 0) of.put(item, total);
  }
};
template <class M>
struct ResultOfPartsAt {
  Reducing<M> of;
  template <class T>
  DTF_HOST_DEVICE void operator()(const T& team, int64_t result) const {
    typename M::Total mine = 0;
    for (int64_t part = team.rank(); part < of.r.parts; part += team.size())
      mine = M::both(mine, of.totals[part * of.r.results + result]);
    const auto total = M::ofAll(team, mine);
    if (team.rank() == 0) of.y[result] = of.m.result(total);
  }
};

template <class M>
class ReductionKernel final : public Kernel {
 public:
  ReductionKernel(const Operation& o, const std::vector<int64_t>& axes)
      : r_(o, axes), m_(o, r_.elements) {}
  void launch(Device& device, const Arguments& a) override {
    const Reducing<M> of = {m_, r_, a.in(0), reinterpret_cast<typename M::Total*>(a.workspace),
                            a.out<typename M::Result>(0)};
    const int64_t items = r_.results * r_.parts, each = (r_.elements + r_.parts - 1) / r_.parts;
    if (r_.by_team) {
      forTeams(device, items, each / kElementsOfThread, ReduceByTeamAt<M>{of, each});
    } else {
      forElements(device, items, ReduceAt<M>{of});
    }
    if (r_.parts > 1) forTeams(device, r_.results, r_.parts, ResultOfPartsAt<M>{of});
  }
  size_t workspaceBytes() const override {
    return r_.parts == 1 ? 0
                         : static_cast<size_t>(r_.results * r_.parts) * sizeof(typename M::Total);
  }

 private:
  static constexpr int64_t kElementsOfThread = 4;  // for a team, at least

  const Reduction r_;
  const M m_;
};

std::unique_ptr<Kernel> sum(const Operation& o) {
  return std::make_unique<ReductionKernel<MakeSum>>(o, o.list("axes"));
}
template <bool IsLargest>
std::unique_ptr<Kernel> extreme(const Operation& o) {
  return std::make_unique<ReductionKernel<FindExtreme<IsLargest>>>(o, o.list("axes"));
}
std::unique_ptr<Kernel> argMax(const Operation& o) {
  return std::make_unique<ReductionKernel<FindLargest>>(o, std::vector{o.integer("axis")});
}

}  // namespace

void addReductionKernels(KernelTable& table) {
  table["Sum"] = table["Mean"] = sum;
  table["Max"] = extreme<true>;
  table["Min"] = extreme<false>;
  table["ArgMax"] = argMax;
}

}  // namespace dtf::gpu
