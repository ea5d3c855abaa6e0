// Activations, losses, normalisation and parts of tensors.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "tests/unit/graph/reference_kernels.h"

namespace dtf::graph::testing {
namespace {

using F1 = double (*)(double);
using F2 = double (*)(double, double);

ReferenceKernel each(F1 f) {
  return [f](const Call& call) {
    Values y;
    for (const double x : call.in(0)) y.push_back(f(x));
    return Results{y};
  };
}

ReferenceKernel each(F2 f) {
  return [f](const Call& call) {
    Values y;
    for (size_t i = 0; i < call.outElements(); ++i) y.push_back(f(call.in(0)[i], call.in(1)[i]));
    return Results{y};
  };
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

double normalDensity(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}
double normalDistribution(double x) {
  return std::erfc(-x / std::numbers::sqrt2) / 2;
}

// tanh(u) of the approximate Gelu, and du/dx.
double geluTanh(double x) {
  return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}
double geluSlope(double x) {
  return std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
}

double geluDerivative(double x, bool approximate) {
  if (!approximate) return normalDistribution(x) + x * normalDensity(x);
  const double t = geluTanh(x);
  return (1 + t) / 2 + x / 2 * (1 - t * t) * geluSlope(x);
}

void addActivations(ReferenceKernels& all) {
  all["Abs"] = each([](double x) { return std::abs(x); });
  all["AbsGrad"] = each([](double dy, double x) { return x > 0 ? dy : x < 0 ? -dy : 0; });
  all["Relu6"] = each([](double x) { return std::clamp(x, 0.0, 6.0); });
  all["Relu6Grad"] = each([](double dy, double y) { return y > 0 && y < 6 ? dy : 0; });
  all["Elu"] = each([](double x) { return x > 0 ? x : std::expm1(x); });
  all["EluGrad"] = each([](double dy, double y) { return y > 0 ? dy : dy * (y + 1); });
  all["Silu"] = each([](double x) { return x * logistic(x); });
  all["SiluGrad"] =
      each([](double dy, double x) { return dy * logistic(x) * (1 + x * (1 - logistic(x))); });
  all["Softplus"] =
      each([](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); });
  all["SoftplusGrad"] = each([](double dy, double x) { return dy * logistic(x); });
  all["LeakyRelu"] = [](const Call& call) {
    Values y = call.in(0);
    for (double& x : y) x = x > 0 ? x : x * call.node.attribute<double>("alpha");
    return Results{y};
  };
  all["LeakyReluGrad"] = [](const Call& call) {
    Values dx = call.in(0);
    for (size_t i = 0; i < dx.size(); ++i) {
      if (call.in(1)[i] <= 0) dx[i] *= call.node.attribute<double>("alpha");
    }
    return Results{dx};
  };
  all["Gelu"] = [](const Call& call) {
    const bool approximate = call.node.attribute<bool>("approximate");
    Values y;
    for (const double x : call.in(0)) {
      y.push_back(approximate ? x * (1 + geluTanh(x)) / 2 : x * normalDistribution(x));
    }
    return Results{y};
  };
  all["GeluGrad"] = [](const Call& call) {
    Values dx = call.in(0);
    for (size_t i = 0; i < dx.size(); ++i) {
      dx[i] *= geluDerivative(call.in(1)[i], call.node.attribute<bool>("approximate"));
    }
    return Results{dx};
  };
}

void addLosses(ReferenceKernels& all) {
  all["Huber"] = [](const Call& call) {
    const auto delta = call.node.attribute<double>("delta");
    Values y;
    for (const double x : call.in(0)) {
      y.push_back(std::abs(x) <= delta ? x * x / 2 : delta * (std::abs(x) - delta / 2));
    }
    return Results{y};
  };
  all["HuberGrad"] = [](const Call& call) {
    const auto delta = call.node.attribute<double>("delta");
    Values dx = call.in(0);
    for (size_t i = 0; i < dx.size(); ++i) dx[i] *= std::clamp(call.in(1)[i], -delta, delta);
    return Results{dx};
  };
  all["SoftmaxCrossEntropyWithLogits"] = [](const Call& call) {
    const size_t rows = call.dim(0, 0), classes = call.dim(0, 1);
    Values loss(rows), backprop(rows * classes);
    for (size_t row = 0; row < rows; ++row) {
      const double* const x = call.in(0).data() + row * classes;
      const double* const z = call.in(1).data() + row * classes;
      const double max = *std::max_element(x, x + classes);
      double sum = 0;
      for (size_t i = 0; i < classes; ++i) sum += std::exp(x[i] - max);
      for (size_t i = 0; i < classes; ++i) {
        loss[row] += z[i] * (std::log(sum) - (x[i] - max));
        backprop[row * classes + i] = std::exp(x[i] - max) / sum - z[i];
      }
    }
    return Results{loss, backprop};
  };
}

// The elements of a normalisation: (row, column), with its channel and its group of statistics.
struct Normalised {
  explicit Normalised(const Call& call, size_t x)
      : channels(call.dim(x, call.inShape(x).rank() - 1)),
        rows(static_cast<size_t>(call.inShape(x).elements()) / channels) {}
  size_t channels, rows;
};

// By channel, or by row.
struct Statistics {
  Values mean, variance;  // biased
};
Statistics statisticsOf(const Values& x, const Normalised& n, bool by_channel) {
  const size_t groups = by_channel ? n.channels : n.rows;
  const double count = static_cast<double>(x.size() / groups);
  const auto group = [&](size_t i) { return by_channel ? i % n.channels : i / n.channels; };
  Statistics s = {Values(groups), Values(groups)};
  for (size_t i = 0; i < x.size(); ++i) s.mean[group(i)] += x[i] / count;
  for (size_t i = 0; i < x.size(); ++i) {
    s.variance[group(i)] += std::pow(x[i] - s.mean[group(i)], 2) / count;
  }
  return s;
}

Values inverses(const Values& variance, const Call& call) {
  Values inverse;
  for (const double v : variance) {
    inverse.push_back(1 / std::sqrt(v + call.node.attribute<double>("epsilon")));
  }
  return inverse;
}

Values normalised(const Call& call, const Normalised& n, const Values& mean, const Values& inverse,
                  bool by_channel) {
  Values y = call.in(0);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t channel = i % n.channels, group = by_channel ? channel : i / n.channels;
    y[i] = (y[i] - mean[group]) * inverse[group] * call.in(1)[channel] + call.in(2)[channel];
  }
  return y;
}

Results batchNorm(const Call& call) {
  const Normalised n(call, 0);
  const Statistics s = statisticsOf(call.in(0), n, true);
  const Values inverse = inverses(s.variance, call);
  Values unbiased = s.variance;
  const double rows = static_cast<double>(n.rows);
  for (double& v : unbiased) v *= rows / std::max(rows - 1, 1.0);
  return {normalised(call, n, s.mean, inverse, true), s.mean, unbiased, inverse};
}

Results batchNormInference(const Call& call) {
  return {normalised(call, Normalised(call, 0), call.in(3), inverses(call.in(4), call), true)};
}

Results layerNorm(const Call& call) {
  const Normalised n(call, 0);
  const Statistics s = statisticsOf(call.in(0), n, false);
  const Values inverse = inverses(s.variance, call);
  return {normalised(call, n, s.mean, inverse, false), s.mean, inverse};
}

// With h = (x - mean) * inverse and g = dy * scale, of each group of statistics:
// dx = inverse * (g - mean(g) - h * mean(g * h)).
ReferenceKernel normGrad(bool by_channel) {
  return [by_channel](const Call& call) {
    const Normalised n(call, 1);
    const Values &dy = call.in(0), &x = call.in(1), &scale = call.in(2), &mean = call.in(3),
                 &inverse = call.in(4);
    const double count = static_cast<double>(x.size() / mean.size());
    Values dx(x.size()), dscale(n.channels), doffset(n.channels);
    Values sum_g(mean.size()), sum_gh(mean.size());
    const auto group = [&](size_t i) { return by_channel ? i % n.channels : i / n.channels; };
    const auto h = [&](size_t i) { return (x[i] - mean[group(i)]) * inverse[group(i)]; };
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t channel = i % n.channels;
      doffset[channel] += dy[i];
      dscale[channel] += dy[i] * h(i);
      sum_g[group(i)] += dy[i] * scale[channel] / count;
      sum_gh[group(i)] += dy[i] * scale[channel] * h(i) / count;
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const double g = dy[i] * scale[i % n.channels];
      dx[i] = inverse[group(i)] * (g - sum_g[group(i)] - h(i) * sum_gh[group(i)]);
    }
    return Results{dx, dscale, doffset};
  };
}

// Calls f(index in the part, index in the whole) for a part of `whole` that begins at `begin`.
template <class F>
void forEachOfPart(const Shape& part, const Shape& whole, const std::vector<int64_t>& begin,
                   const F& f) {
  for (int64_t i = 0; i < part.elements(); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int axis = part.rank() - 1; axis >= 0; --axis) {
      at += (rest % part.dim(axis) + begin[static_cast<size_t>(axis)]) * stride;
      rest /= part.dim(axis);
      stride *= whole.dim(axis);
    }
    f(static_cast<size_t>(i), static_cast<size_t>(at));
  }
}

Results concat(const Call& call) {
  const auto axis = static_cast<size_t>(call.node.attribute<int64_t>("axis"));
  const Shape& whole = call.node.outputs[0].shape;
  std::vector<int64_t> begin(static_cast<size_t>(whole.rank()));
  Values y(call.outElements());
  for (size_t part = 0; part < call.inputs.size(); ++part) {
    forEachOfPart(call.inShape(part), whole, begin,
                  [&](size_t from, size_t to) { y[to] = call.in(part)[from]; });
    begin[axis] += call.inShape(part).dims()[axis];
  }
  return {y};
}

Results slice(const Call& call) {
  Values y(call.outElements());
  forEachOfPart(call.node.outputs[0].shape, call.inShape(0),
                call.node.attribute<Shape>("begin").dims(),
                [&](size_t to, size_t from) { y[to] = call.in(0)[from]; });
  return {y};
}

Results transpose(const Call& call) {
  const std::vector<int64_t>& permutation = call.node.attribute<Shape>("permutation").dims();
  const std::vector<int64_t>& dims = call.inShape(0).dims();
  Values moved(call.outElements());
  std::vector<int64_t> at(dims.size(), 0);  // in x
  for (const double value : call.in(0)) {
    int64_t to = 0;
    for (const int64_t axis : permutation)
      to = to * dims[static_cast<size_t>(axis)] + at[static_cast<size_t>(axis)];
    moved[static_cast<size_t>(to)] = value;
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < dims[i]) break;
      at[i] = 0;
    }
  }
  return {moved};
}

Results pad(const Call& call) {
  Values y(call.outElements());
  forEachOfPart(call.inShape(0), call.node.outputs[0].shape,
                call.node.attribute<Shape>("before").dims(),
                [&](size_t from, size_t to) { y[to] = call.in(0)[from]; });
  return {y};
}

size_t rowAt(const Call& call, size_t i, int64_t rows) {
  const double index = call.in(1)[i];
  if (index < 0 || index >= static_cast<double>(rows)) {
    throw std::invalid_argument(call.node.name + ": index " + std::to_string(index));
  }
  return static_cast<size_t>(index);
}

Results gather(const Call& call) {
  const Shape& table = call.inShape(0);
  const auto width = static_cast<size_t>(table.elements() / table.dim(0));
  Values y;
  for (size_t i = 0; i < call.in(1).size(); ++i) {
    const double* const row = call.in(0).data() + rowAt(call, i, table.dim(0)) * width;
    y.insert(y.end(), row, row + width);
  }
  return {y};
}

Results unsortedSegmentSum(const Call& call) {
  const Shape& table = call.node.outputs[0].shape;
  const auto width = static_cast<size_t>(table.elements() / table.dim(0));
  Values sums(call.outElements());
  for (size_t i = 0; i < call.in(0).size(); ++i) {
    sums[rowAt(call, i / width, table.dim(0)) * width + i % width] += call.in(0)[i];
  }
  return {sums};
}

// Returns the new value of the variable that is the first input.
ReferenceKernel scatter(bool adds) {
  return [adds](const Call& call) {
    const Shape& table = call.inShape(0);
    const auto width = static_cast<size_t>(table.elements() / table.dim(0));
    Values changed = call.in(0);
    for (size_t i = 0; i < call.in(2).size(); ++i) {
      double& element =
          changed[static_cast<size_t>(rowAt(call, i / width, table.dim(0))) * width + i % width];
      element = (adds ? element : 0) + call.in(2)[i];
    }
    return Results{changed};
  };
}

ReferenceKernel assign(double before, double sign) {
  return [before, sign](const Call& call) {
    Values changed = call.in(0);
    for (size_t i = 0; i < changed.size(); ++i)
      changed[i] = before * changed[i] + sign * call.in(1)[i];
    return Results{changed};
  };
}

}  // namespace

void addLayerReferences(ReferenceKernels& kernels) {
  addActivations(kernels);
  addLosses(kernels);
  kernels["FusedBatchNorm"] = batchNorm;
  kernels["FusedBatchNormInference"] = batchNormInference;
  kernels["FusedBatchNormGrad"] = normGrad(true);
  kernels["LayerNorm"] = layerNorm;
  kernels["LayerNormGrad"] = normGrad(false);
  kernels["Concat"] = concat;
  kernels["Transpose"] = transpose;
  kernels["Slice"] = slice;
  kernels["Pad"] = pad;
  kernels["Gather"] = gather;
  kernels["UnsortedSegmentSum"] = unsortedSegmentSum;
  kernels["ScatterAdd"] = scatter(true);
  kernels["ScatterUpdate"] = scatter(false);
  kernels["Assign"] = assign(0, 1);
  kernels["AssignAdd"] = assign(1, 1);
  kernels["AssignSub"] = assign(1, -1);
}

}  // namespace dtf::graph::testing
