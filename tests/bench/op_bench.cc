#include "tests/bench/op_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/random.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/kernel_timing.h"

namespace dtf::bench {

namespace {

using graph::Output;

constexpr int64_t kOpColumns = 256;

// Kernels in other tables, and ops that call functions.
const std::set<std::string>& unmeasured() {
  static const std::set<std::string> kOps = {"Conv2D",
                                             "Conv2DBackpropInput",
                                             "Conv2DBackpropFilter",
                                             "MaxPool",
                                             "MaxPoolGrad",
                                             "AvgPool",
                                             "AvgPoolGrad",
                                             "If",
                                             "While"};
  return kOps;
}

// Fused kernels have no op of the catalogue: `dtf-bench models` measures them.
bool isMeasurable(const std::string& op) {
  return !op.starts_with('_') && !unmeasured().contains(op) &&
         graph::standardOps().find(op) != nullptr;
}

// Every node but the placeholders and variables is an op to measure.
struct OpGraph {
  Output floats(Shape shape) {
    return b.placeholder(graph.uniqueName("x"), DType::kFloat32, std::move(shape));
  }
  Output integers(Shape shape, DType dtype = DType::kInt32) {
    return b.placeholder(graph.uniqueName("i"), dtype, std::move(shape));
  }
  graph::Graph graph{graph::standardOps()};
  graph::Builder b{graph};
};

void addElementwise(OpGraph& g, int64_t rows) {
  const Shape shape = {rows, kOpColumns};
  const Output x = g.floats(shape), y = g.floats(shape);
  const Output mask = g.integers(shape, DType::kUInt8);
  g.b.add(x, y), g.b.sub(x, y), g.b.mul(x, y), g.b.squaredDifference(x, y), g.b.div(x, y);
  g.b.abs(x);
  g.b.maximum(x, y), g.b.minimum(x, y), g.b.pow(x, y), g.b.exp(x), g.b.log(x), g.b.sqrt(x);
  g.b.rsqrt(x), g.b.cast(mask, DType::kFloat32), g.b.cast(x, DType::kInt32);
  g.b.node("Select", {mask, x, y}), g.b.node("StopGradient", {x});
  g.b.absGrad(x, y), g.b.scale(x, 0.5), g.b.addN({x, y, x}), g.b.less(x, y), g.b.equal(x, y);
  g.b.node("LessEqual", {x, y}), g.b.node("Identity", {x}), g.b.reshape(x, {rows * kOpColumns});
  g.b.relu(x), g.b.reluGrad(x, y), g.b.relu6(x), g.b.relu6Grad(x, y), g.b.leakyRelu(x, 0.1);
  g.b.leakyReluGrad(x, y, 0.1), g.b.sigmoid(x), g.b.sigmoidGrad(x, y), g.b.tanh(x);
  g.b.tanhGrad(x, y), g.b.elu(x), g.b.eluGrad(x, y), g.b.gelu(x), g.b.geluGrad(x, y, false);
  g.b.silu(x), g.b.siluGrad(x, y), g.b.softplus(x), g.b.softplusGrad(x, y);
  g.b.sigmoidCrossEntropy(x, y), g.b.sigmoidCrossEntropyGrad(x, x, y), g.b.huber(x, 1);
  g.b.huberGrad(x, y, 1), g.b.normalise(g.integers(shape, DType::kUInt8), 1.0 / 255);
  g.b.dropout(x, g.integers({2}, DType::kInt64), 0.5, 1);
}

void addByRow(OpGraph& g, int64_t rows) {
  const Shape shape = {rows, kOpColumns};
  const Output x = g.floats(shape), y = g.floats(shape), labels = g.integers({rows});
  g.b.sum(x, {0}), g.b.sum(x, {1}), g.b.mean(x, {1}), g.b.argMax(x, 1), g.b.max(x, {1}),
      g.b.min(x, {0});
  const Output seed = g.integers({2}, DType::kInt64);
  g.b.randomUniform(seed, shape, 0), g.b.randomNormal(seed, shape, 0);
  const Output column = g.floats({rows}), row = g.floats({kOpColumns}), one = g.floats({});
  g.b.broadcastTo(row, shape), g.b.biasAdd(x, row), g.b.biasAddGrad(x), g.b.mean(x),
      g.b.meanGrad(one, shape);
  g.b.mulRows(column, x), g.b.softmax(x), g.b.softmaxGrad(x, y), g.b.softmaxCrossEntropy(x, y);
  g.b.sparseSoftmaxCrossEntropy(x, labels), g.b.accuracy(x, labels), g.b.oneHot(labels, kOpColumns);
  g.b.batchNorm(x, row, row, 1e-3), g.b.batchNormInference(x, row, row, row, row, 1e-3);
  g.b.batchNormGrad(x, y, row, row, row, 1e-3), g.b.layerNorm(x, row, row, 1e-3);
  g.b.layerNormGrad(x, y, row, column, column, 1e-3);
  g.b.concat({x, y}, 1), g.b.slice(x, {0, 0}, {rows, kOpColumns / 2});
  g.b.pad(x, {0, 1}, {0, 1}), g.b.transpose(x, {1, 0});
  const Output table = g.b.variable("table", shape);
  for (const char* const op : {"Assign", "AssignAdd", "AssignSub"}) g.b.node(op, {table, x});
  for (const char* const op : {"ScatterAdd", "ScatterUpdate"}) g.b.node(op, {table, labels, x});
  g.b.gather(x, labels), g.b.unsortedSegmentSum(x, labels, shape);
}

// Products in the perceptrons of `dtf-bench models`, forwards and for both gradients, and a large
// one.
void addProducts(OpGraph& g, bool quick) {
  const auto layer = [&](int64_t batch, int64_t from, int64_t to) {
    const Output x = g.floats({batch, from}), w = g.floats({from, to}), dy = g.floats({batch, to});
    g.b.matMul(x, w), g.b.matMul(dy, w, false, true), g.b.matMul(x, dy, true, false);
  };
  layer(100, 784, 10);
  if (quick) return;
  layer(100, 784, 300);
  layer(100, 300, 100);
  layer(100, 300, 300);
  layer(128, 3136, 1024);
  layer(1024, 1024, 1024);
}

// A kernel with memory for its inputs and outputs.
class Prepared {
 public:
  Prepared(const graph::Graph& graph, const graph::Node& node,
           const runtime::KernelTable& kernels) {
    runtime::Operation operation{node.name, node.op, node.attributes, node.inputs, {}, {}, {}};
    for (const Output& input : node.inputs)
      operation.input_specs.push_back(
          graph.node(input.node).outputs[static_cast<size_t>(input.index)]);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      operation.outputs.push_back({node.id, static_cast<int32_t>(i)});
    operation.output_specs = node.outputs;
    kernel_ = kernels.make(operation, runtime::DeviceType::kCpu);
    kernel_->prepare(device_);
    for (const graph::TensorSpec& spec : operation.input_specs)
      inputs_.push_back(filled(spec).data());
    for (const graph::TensorSpec& spec : operation.output_specs)
      outputs_.push_back(keep(Buffer(bytesOf(spec))).data());
    workspace_ = Buffer(std::max<size_t>(1, kernel_->workspaceBytes()));
  }
  void run() { kernel_->run({inputs_, outputs_, workspace_.data()}); }
  size_t bytes() const { return bytes_; }

 private:
  static size_t bytesOf(const graph::TensorSpec& spec) {
    return static_cast<size_t>(spec.shape.elements()) * dtypeBytes(spec.dtype);
  }
  Buffer& keep(Buffer buffer) {
    bytes_ += buffer.bytes();
    buffers_.push_back(std::move(buffer));
    return buffers_.back();
  }
  // Whole numbers are 0 to 7: classes, rows of a table, pixels.
  Buffer& filled(const graph::TensorSpec& spec) {
    if (spec.dtype == DType::kFloat32) return keep(randomFloats(spec.shape.elements()));
    Buffer& buffer = keep(Buffer(bytesOf(spec)));
    std::fill_n(buffer.data(), buffer.bytes(), std::byte{0});
    Random random(7);
    for (size_t at = 0; at < buffer.bytes(); at += dtypeBytes(spec.dtype))
      buffer.data()[at] = static_cast<std::byte>(random.below(8));
    return buffer;
  }

  runtime::CpuDevice device_;
  std::vector<Buffer> buffers_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  Buffer workspace_;
  std::unique_ptr<runtime::Kernel> kernel_;
  size_t bytes_ = 0;
};

// Calls `row` with the name that `name` gives an op to measure, the op, and its kernel, if the name
// begins with `only`. Adds all ops to `seen`.
template <class Name, class Row>
void forEachKernel(const OpGraph& g, const runtime::KernelTable& kernels, const std::string& only,
                   std::set<std::string>& seen, const Name& name, const Row& row) {
  for (const graph::Node& node : g.graph.nodes()) {
    if (node.op == "Placeholder" || node.op == "Variable") continue;
    seen.insert(node.op);
    const std::string what = name(node);
    if (!what.starts_with(only)) continue;
    Prepared prepared(g.graph, node, kernels);
    row(what, node, prepared);
  }
}

void measureBytes(const OpGraph& g, const runtime::KernelTable& kernels,
                  const BenchOptions& options, const std::string& size, std::set<std::string>& seen,
                  Report& report) {
  std::map<size_t, double> copies;  // by the floats that are copied
  const auto name = [&](const graph::Node& node) { return fmt::format("{}, {}", node.op, size); };
  const auto row = [&](const std::string& what, const graph::Node&, Prepared& prepared) {
    const size_t floats = prepared.bytes() / (2 * sizeof(float));
    if (!copies.contains(floats))
      copies[floats] = copyRate(static_cast<int64_t>(floats), options) / 1e9;
    const double seconds = secondsPerCall([&] { prepared.run(); }, options);
    const double rate = static_cast<double>(prepared.bytes()) / seconds / 1e9;
    report.add(what, {seconds * 1e6, rate, copies[floats], rate / copies[floats]});
  };
  forEachKernel(g, kernels, options.only, seen, name, row);
}

// The sizes of a product, as C = A * B has them.
struct Product {
  Product(const OpGraph& g, const graph::Node& node)
      : turns_a(node.attribute<bool>("transpose_a")),
        turns_b(node.attribute<bool>("transpose_b")),
        rows(node.outputs[0].shape.dims()[0]),
        columns(node.outputs[0].shape.dims()[1]),
        depth(g.graph.node(node.inputs[0].node).outputs[0].shape.dims()[turns_a ? 0 : 1]) {}
  std::string name() const {
    return fmt::format("{} x {} x {}{}{}", rows, depth, columns, turns_a ? ", A turned" : "",
                       turns_b ? ", B turned" : "");
  }
  double operations() const { return 2.0 * static_cast<double>(rows * columns * depth); }

  bool turns_a, turns_b;
  int64_t rows, columns, depth;
};

void measureProducts(Isa isa, const runtime::KernelTable& kernels, const BenchOptions& options,
                     std::set<std::string>& seen, Report& report) {
  OpGraph g;
  addProducts(g, options.quick && options.only.empty());
  const auto name = [&g](const graph::Node& node) { return Product(g, node).name(); };
  const auto row = [&](const std::string& what, const graph::Node& node, Prepared& prepared) {
    const double peak = fmaPeak(isa);
    const double seconds = secondsPerCall([&] { prepared.run(); }, options);
    const double rate = Product(g, node).operations() / seconds / 1e9;
    report.add(what, {seconds * 1e6, rate, peak, rate / peak});
  };
  forEachKernel(g, kernels, options.only, seen, name, row);
}

void checkComplete(const runtime::KernelTable& kernels, const std::set<std::string>& seen) {
  std::vector<std::string> missing;
  for (const std::string& op : kernels.ops(runtime::DeviceType::kCpu))
    if (isMeasurable(op) && !seen.contains(op)) missing.push_back(op);
  if (!missing.empty())
    throw Error(ErrorCode::kInternal, fmt::format("no row measures the kernels of {}: add them in "
                                                  "tests/bench/op_bench.cc",
                                                  fmt::join(missing, ", ")));
}

}  // namespace

std::vector<Report> benchOps(Isa isa, const BenchOptions& options) {
  const std::string name(isaName(isa));
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels, isa);
  std::set<std::string> seen;
  Report products(name + ", products", {"us", "GF/s", "FMA peak", "of peak"});
  measureProducts(isa, kernels, options, seen, products);
  Report others(name + ", other ops", {"us", "GB/s", "memcpy GB/s", "of memcpy"});
  for (const int64_t rows : {int64_t{100}, int64_t{16384}}) {
    if (options.quick && options.only.empty() && rows != 100) continue;
    OpGraph g;
    addElementwise(g, rows);
    addByRow(g, rows);
    measureBytes(g, kernels, options, fmt::format("{} x {}", rows, kOpColumns), seen, others);
  }
  checkComplete(kernels, seen);
  return {std::move(products), std::move(others)};
}

}  // namespace dtf::bench
