// Arithmetic that broadcasts, reductions, casts and random numbers, as the catalogue defines them.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/base/random.h"
#include "tests/unit/graph/reference_kernels.h"

namespace dtf::graph::testing {
namespace {

// Returns the coordinates of the element with number `index`.
std::vector<int64_t> placeOf(const Shape& shape, size_t index) {
  std::vector<int64_t> place(static_cast<size_t>(shape.rank()));
  auto rest = static_cast<int64_t>(index);
  for (size_t i = place.size(); i-- > 0;) {
    place[i] = rest % shape.dims()[i];
    rest /= shape.dims()[i];
  }
  return place;
}

// Returns the element of a tensor of `shape` that broadcasts to this place of a larger one.
size_t indexAt(const Shape& shape, const std::vector<int64_t>& place) {
  int64_t index = 0;
  const size_t skipped = place.size() - static_cast<size_t>(shape.rank());
  for (size_t i = skipped; i < place.size(); ++i) {
    const int64_t dim = shape.dims()[i - skipped];
    index = index * dim + (dim == 1 ? 0 : place[i]);
  }
  return static_cast<size_t>(index);
}

Results sum(const Call& call) {
  const Shape& x = call.inShape(0);
  const Shape axes = call.node.attribute<Shape>("axes");
  std::vector<int64_t> kept = x.dims();
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto& named = axes.dims();
    const bool is_named = std::find(named.begin(), named.end(), i) != named.end();
    if (named.empty() || is_named) kept[i] = 1;
  }
  Values sums(call.outElements(), 0);
  for (size_t i = 0; i < call.in(0).size(); ++i)
    sums[indexAt(Shape(kept), placeOf(x, i))] += call.in(0)[i];
  return {sums};
}

ReferenceKernel extreme(bool is_largest) {
  return [is_largest](const Call& call) {
    const Shape& x = call.inShape(0);
    const Shape axes = call.node.attribute<Shape>("axes");
    std::vector<int64_t> kept = x.dims();
    for (size_t i = 0; i < kept.size(); ++i) {
      const auto& named = axes.dims();
      if (named.empty() || std::find(named.begin(), named.end(), i) != named.end()) kept[i] = 1;
    }
    Values found(call.outElements(), is_largest ? -INFINITY : INFINITY);
    for (size_t i = 0; i < call.in(0).size(); ++i) {
      const double value = call.in(0)[i];
      double& one = found[indexAt(Shape(kept), placeOf(x, i))];
      if (std::isnan(value) || (is_largest ? value > one : value < one)) one = value;
    }
    return Results{found};
  };
}

Results mean(const Call& call) {
  Results means = sum(call);
  const double share =
      static_cast<double>(means[0].size()) / static_cast<double>(call.in(0).size());
  for (double& value : means[0]) value *= share;
  return means;
}

Results broadcastTo(const Call& call) {
  Values y;
  for (size_t i = 0; i < call.outElements(); ++i)
    y.push_back(call.in(0)[indexAt(call.inShape(0), placeOf(call.node.outputs[0].shape, i))]);
  return {y};
}

Results argMax(const Call& call) {
  const Shape& x = call.inShape(0);
  const auto axis = static_cast<size_t>(call.node.attribute<int64_t>("axis"));
  Values places(call.outElements(), 0);
  for (size_t i = 0; i < places.size(); ++i) {
    std::vector<int64_t> place = placeOf(call.node.outputs[0].shape, i);
    place.insert(place.begin() + static_cast<std::ptrdiff_t>(axis), 0);
    double largest = -INFINITY;
    for (; place[axis] < x.dims()[axis]; ++place[axis]) {
      const double value = call.in(0)[indexAt(x, place)];
      if (!(value > largest)) continue;
      largest = value;
      places[i] = static_cast<double>(place[axis]);
    }
  }
  return {places};
}

Results cast(const Call& call) {
  const auto bounds = [](DType dtype) -> std::pair<double, double> {
    if (dtype == DType::kUInt8) return {0, 255};
    if (dtype == DType::kInt32) return {INT32_MIN, INT32_MAX};
    return {-0x1p63, 0x1p63};
  };
  const DType to = call.node.outputs[0].dtype;
  Values y = call.in(0);
  if (to == DType::kFloat32) return {y};
  const auto [least, most] = bounds(to);
  for (double& value : y)
    value = std::isnan(value) ? 0 : std::clamp(std::trunc(value), least, most);
  return {y};
}

ReferenceKernel random(bool is_normal) {
  return [is_normal](const Call& call) {
    const auto word = [&](size_t i, int shift) {
      return static_cast<uint32_t>(static_cast<uint64_t>(call.in(0)[i]) >> shift);
    };
    const auto stream = static_cast<uint32_t>(call.node.attribute<int64_t>("stream"));
    Values y(call.outElements());
    for (size_t i = 0; i < y.size(); ++i) {
      const auto drawn =
          philox({static_cast<uint32_t>(i / 4), word(1, 0), word(1, 32), 0x12000000 | stream},
                 {word(0, 0), word(0, 32)});
      const size_t pair = i % 4 / 2 * 2;
      const double angle = 2 * M_PI * drawn[pair + 1] / 4294967296.0;
      const double radius = std::sqrt(-2 * std::log((drawn[pair] + 1.0) / 4294967296.0));
      y[i] = is_normal ? radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle))
                       : std::floor(drawn[i % 4] / 256.0) / 16777216.0;
    }
    return Results{y};
  };
}

Results select(const Call& call) {
  Values y;
  for (size_t i = 0; i < call.outElements(); ++i)
    y.push_back(call.in(call.in(0)[i] != 0 ? 1 : 2)[i]);
  return {y};
}

ReferenceKernel elementwise(double (*f)(double)) {
  return [f](const Call& call) {
    Values y;
    for (const double x : call.in(0)) y.push_back(f(x));
    return Results{y};
  };
}

}  // namespace

ReferenceKernel broadcasting(double (*f)(double, double)) {
  return [f](const Call& call) {
    Values y;
    for (size_t i = 0; i < call.outElements(); ++i) {
      const auto place = placeOf(call.node.outputs[0].shape, i);
      y.push_back(f(call.in(0)[indexAt(call.inShape(0), place)],
                    call.in(1)[indexAt(call.inShape(1), place)]));
    }
    return Results{y};
  };
}

void addMathReferences(ReferenceKernels& kernels) {
  kernels["Add"] = broadcasting([](double a, double b) { return a + b; });
  kernels["Sub"] = broadcasting([](double a, double b) { return a - b; });
  kernels["Mul"] = broadcasting([](double a, double b) { return a * b; });
  kernels["Div"] = broadcasting([](double a, double b) { return a / b; });
  kernels["Maximum"] = broadcasting(
      [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); });
  kernels["Minimum"] = broadcasting(
      [](double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); });
  kernels["SquaredDifference"] = broadcasting([](double a, double b) { return (a - b) * (a - b); });
  kernels["Pow"] = broadcasting([](double a, double b) { return std::pow(a, b); });
  kernels["Less"] = broadcasting([](double a, double b) { return a < b ? 1.0 : 0.0; });
  kernels["LessEqual"] = broadcasting([](double a, double b) { return a <= b ? 1.0 : 0.0; });
  kernels["Equal"] = broadcasting([](double a, double b) { return a == b ? 1.0 : 0.0; });
  kernels["Exp"] = elementwise([](double x) { return std::exp(x); });
  kernels["Log"] = elementwise([](double x) { return std::log(x); });
  kernels["Sqrt"] = elementwise([](double x) { return std::sqrt(x); });
  kernels["Rsqrt"] = elementwise([](double x) { return 1 / std::sqrt(x); });
  kernels["StopGradient"] = elementwise([](double x) { return x; });
  kernels["Select"] = select;
  kernels["Cast"] = cast;
  kernels["Sum"] = sum;
  kernels["Mean"] = mean;
  kernels["Max"] = extreme(true);
  kernels["Min"] = extreme(false);
  kernels["BroadcastTo"] = broadcastTo;
  kernels["ArgMax"] = argMax;
  kernels["StatelessRandomUniform"] = random(false);
  kernels["StatelessRandomNormal"] = random(true);
}

}  // namespace dtf::graph::testing
