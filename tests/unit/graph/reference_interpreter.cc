#include "tests/unit/graph/reference_interpreter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>

#include "common/base/random.h"
#include "tests/unit/graph/reference_kernels.h"

namespace dtf::graph::testing {
namespace {

using Kernel = ReferenceKernel;

size_t labelAt(const Call& call, size_t input, size_t row, size_t classes) {
  const double label = call.in(input)[row];
  if (label < 0 || label >= static_cast<double>(classes)) {
    throw std::invalid_argument(call.node.name + ": label " + std::to_string(label) +
                                " is out of range");
  }
  return static_cast<size_t>(label);
}

Kernel unary(double (*f)(double)) {
  return [f](const Call& call) {
    Values y;
    for (const double x : call.in(0)) y.push_back(f(x));
    return Results{y};
  };
}

Kernel binary(double (*f)(double, double)) {
  return [f](const Call& call) {
    Values y;
    for (size_t i = 0; i < call.outElements(); ++i) y.push_back(f(call.in(0)[i], call.in(1)[i]));
    return Results{y};
  };
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

Results scaleBy(const Call& call, double factor) {
  Values y;
  for (const double x : call.in(0)) y.push_back(x * factor);
  return {y};
}

Results addN(const Call& call) {
  Values y(call.outElements(), 0);
  for (const Values* term : call.inputs) {
    for (size_t i = 0; i < y.size(); ++i) y[i] += (*term)[i];
  }
  return {y};
}

Results matMul(const Call& call) {
  const bool ta = call.node.attribute<bool>("transpose_a");
  const bool tb = call.node.attribute<bool>("transpose_b");
  const size_t m = call.dim(0, ta ? 1 : 0);
  const size_t k = call.dim(0, ta ? 0 : 1);
  const size_t n = call.dim(1, tb ? 0 : 1);
  Values c(m * n, 0);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t l = 0; l < k; ++l) {
        c[i * n + j] +=
            call.in(0)[ta ? l * m + i : i * k + l] * call.in(1)[tb ? j * k + l : l * n + j];
      }
    }
  }
  return {c};
}

Results biasAdd(const Call& call) {
  Values y = call.in(0);
  const size_t n = call.dim(1, 0);
  for (size_t i = 0; i < y.size(); ++i) y[i] += call.in(1)[i % n];
  return {y};
}

Results biasAddGrad(const Call& call) {
  const size_t n = call.dim(0, call.inShape(0).rank() - 1);
  Values db(n, 0);
  for (size_t i = 0; i < call.in(0).size(); ++i) db[i % n] += call.in(0)[i];
  return {db};
}

Results meanGrad(const Call& call) {
  const size_t n = call.outElements();
  return {Values(n, call.in(0)[0] / static_cast<double>(n))};
}

Results mulRows(const Call& call) {
  Values y = call.in(1);
  const size_t columns = call.dim(1, 1);
  for (size_t i = 0; i < y.size(); ++i) y[i] *= call.in(0)[i / columns];
  return {y};
}

Values softmaxOf(const Call& call) {
  const size_t classes = call.dim(0, call.inShape(0).rank() - 1);
  Values y = call.in(0);
  for (size_t row = 0; row < y.size(); row += classes) {
    const auto begin = y.begin() + static_cast<std::ptrdiff_t>(row);
    const auto end = begin + static_cast<std::ptrdiff_t>(classes);
    const double max = *std::max_element(begin, end);
    double sum = 0;
    std::for_each(begin, end, [max, &sum](double& x) { sum += x = std::exp(x - max); });
    std::for_each(begin, end, [sum](double& x) { x /= sum; });
  }
  return y;
}

Results softmaxGrad(const Call& call) {
  const Values& dy = call.in(0);
  const Values& y = call.in(1);
  const size_t classes = call.dim(0, call.inShape(0).rank() - 1);
  Values dx(y.size());
  for (size_t row = 0; row < y.size(); row += classes) {
    double dot = 0;
    for (size_t i = row; i < row + classes; ++i) dot += dy[i] * y[i];
    for (size_t i = row; i < row + classes; ++i) dx[i] = (dy[i] - dot) * y[i];
  }
  return {dx};
}

Results sparseSoftmaxCrossEntropy(const Call& call) {
  const size_t rows = call.dim(0, 0);
  const size_t classes = call.dim(0, 1);
  Values loss(rows);
  Values backprop = softmaxOf(call);
  for (size_t row = 0; row < rows; ++row) {
    const size_t label = labelAt(call, 1, row, classes);
    loss[row] = -std::log(backprop[row * classes + label]);
    backprop[row * classes + label] -= 1;
  }
  return {loss, backprop};
}

Results sigmoidCrossEntropy(const Call& call) {
  Values y;
  for (size_t i = 0; i < call.outElements(); ++i) {
    const double x = call.in(0)[i];
    y.push_back(std::max(x, 0.0) - x * call.in(1)[i] + std::log1p(std::exp(-std::abs(x))));
  }
  return {y};
}

Results sigmoidCrossEntropyGrad(const Call& call) {
  Values y;
  for (size_t i = 0; i < call.outElements(); ++i) {
    y.push_back(call.in(0)[i] * (sigmoid(call.in(1)[i]) - call.in(2)[i]));
  }
  return {y};
}

// As standard_nn_ops.cc defines it, one element after the other.
Results dropout(const Call& call) {
  const auto rate = call.node.attribute<double>("rate");
  const auto layer = static_cast<uint32_t>(call.node.attribute<int64_t>("layer"));
  const auto seed = static_cast<uint64_t>(call.in(1)[0]);
  const auto batch = static_cast<uint64_t>(call.in(1)[1]);
  Values y = call.in(0);
  for (size_t i = 0; i < y.size(); ++i) {
    const auto numbers =
        philox({static_cast<uint32_t>(i / 64 * 16 + i % 16), static_cast<uint32_t>(batch),
                static_cast<uint32_t>(batch >> 32), 0x11000000 | layer},
               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    const bool kept = numbers[i % 64 / 16] >= std::floor(rate * 4294967296.0);
    y[i] = kept ? y[i] / (1 - rate) : 0;
  }
  return {y};
}

Results oneHot(const Call& call) {
  const auto depth = static_cast<size_t>(call.node.attribute<int64_t>("depth"));
  Values y(call.outElements(), 0);
  for (size_t row = 0; row < call.dim(0, 0); ++row)
    y[row * depth + labelAt(call, 0, row, depth)] = 1;
  return {y};
}

Results accuracy(const Call& call) {
  const size_t rows = call.dim(0, 0);
  const size_t classes = call.dim(0, 1);
  double hits = 0;
  for (size_t row = 0; row < rows; ++row) {
    const double* logits = call.in(0).data() + row * classes;
    const auto best = static_cast<size_t>(std::max_element(logits, logits + classes) - logits);
    if (best == labelAt(call, 1, row, classes)) ++hits;
  }
  return {{hits / static_cast<double>(rows)}};
}

ReferenceKernels mathKernels() {
  std::map<std::string, Kernel, std::less<>> all;
  all["Identity"] = all["Reshape"] = [](const Call& call) { return Results{call.in(0)}; };
  all["ZerosLike"] = unary([](double) { return 0.0; });
  all["Const"] = [](const Call& call) {
    return Results{Values(call.outElements(), call.node.attribute<double>("value"))};
  };
  all["Normalise"] = [](const Call& call) {
    return scaleBy(call, call.node.attribute<double>("scale"));
  };
  all["Scale"] = [](const Call& call) {
    return scaleBy(call, call.node.attribute<double>("factor"));
  };
  all["AddN"] = addN;
  all["MatMul"] = matMul;
  all["BiasAdd"] = biasAdd;
  all["BiasAddGrad"] = biasAddGrad;
  all["MeanGrad"] = meanGrad;
  all["MulRows"] = mulRows;
  return all;
}

ReferenceKernels allKernels() {
  auto all = mathKernels();
  all["Relu"] = unary([](double x) { return std::max(x, 0.0); });
  all["ReluGrad"] = binary([](double dy, double y) { return y > 0 ? dy : 0; });
  all["Sigmoid"] = unary(sigmoid);
  all["SigmoidGrad"] = binary([](double dy, double y) { return dy * y * (1 - y); });
  all["Tanh"] = unary([](double x) { return std::tanh(x); });
  all["TanhGrad"] = binary([](double dy, double y) { return dy * (1 - y * y); });
  all["Softmax"] = [](const Call& call) { return Results{softmaxOf(call)}; };
  all["SoftmaxGrad"] = softmaxGrad;
  all["SparseSoftmaxCrossEntropyWithLogits"] = sparseSoftmaxCrossEntropy;
  all["SigmoidCrossEntropyWithLogits"] = sigmoidCrossEntropy;
  all["SigmoidCrossEntropyGrad"] = sigmoidCrossEntropyGrad;
  all["OneHot"] = oneHot;
  all["Dropout"] = dropout;
  all["Accuracy"] = accuracy;
  addMathReferences(all);
  addControlReferences(all);
  addImageReferences(all);
  addLayerReferences(all);
  return all;
}

const ReferenceKernels& kernels() {
  static const auto all = allKernels();
  return all;
}

// The values of one evaluation: fed and computed ones.
class Evaluation {
 public:
  Evaluation(const Graph& graph, const Feeds& feeds) : graph_(graph), known_(feeds) {
    for (const auto& [output, values] : feeds) {
      if (values.size() != static_cast<size_t>(graph.spec(output).shape.elements())) {
        throw std::invalid_argument(graph.node(output.node).name + ": fed with " +
                                    std::to_string(values.size()) + " values for " +
                                    graph.spec(output).shape.str());
      }
    }
  }

  const Values& value(Output output) {
    if (!known_.contains(output)) compute(graph_.node(output.node));
    return known_.at(output);
  }

 private:
  void compute(const Node& node) {
    const auto kernel = kernels().find(node.op);
    if (kernel == kernels().end()) {
      throw std::invalid_argument(node.name + " (" + node.op +
                                  ") is not fed and has no definition");
    }
    Call call{graph_, node, {}};
    for (const Output& input : node.inputs)
      call.inputs.push_back(&value(input));  // a map's nodes stay in place
    Results results = kernel->second(call);
    for (size_t i = 0; i < results.size(); ++i) {
      known_.emplace(Output{node.id, static_cast<int32_t>(i)}, std::move(results[i]));
    }
  }

  const Graph& graph_;
  Feeds known_;
};

}  // namespace

std::vector<Values> evaluate(const Graph& graph, const Feeds& feeds,
                             std::span<const Output> fetches) {
  Evaluation evaluation(graph, feeds);
  std::vector<Values> results;
  for (const Output& fetch : fetches) results.push_back(evaluation.value(fetch));
  return results;
}

Values evaluate(const Graph& graph, const Feeds& feeds, Output fetch) {
  return evaluate(graph, feeds, std::span(&fetch, 1))[0];
}

bool isDefined(std::string_view op) {
  return kernels().contains(op);
}

}  // namespace dtf::graph::testing
