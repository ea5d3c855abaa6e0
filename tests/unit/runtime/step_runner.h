#pragma once

// Runs a graph on a device and on the double-precision reference interpreter, and compares.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/runtime/compiled_step.h"
#include "common/tensor/tensor.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::runtime::testing {

using graph::testing::Feeds;
using graph::testing::Values;

// Returns `values` as a tensor of `spec`.
Tensor toTensor(const graph::TensorSpec& spec, const Values& values);

// A compiled step with its own memory for every tensor that is bound.
// Owns: the step and the bound tensors.
// Borrows: device and graph.
class StepRunner {
 public:
  // Binds the values of `feeds` for placeholders, pulls and variables, and a buffer of NaNs for
  // each gradient.
  StepRunner(Device& device, const KernelTable& kernels, const graph::Graph& graph,
             const Feeds& feeds, std::span<const graph::Output> fetches,
             CompileOptions options = {});

  CompiledStep& step() { return *step_; }
  void run() { step_->run(); }
  Values fetch(int i) const;  // of any dtype
  Values gradient(std::string_view variable) const;

 private:
  std::unique_ptr<CompiledStep> step_;
  std::vector<DType> dtypes_;  // of the fetches
  std::vector<Tensor> bound_;
  std::map<std::string, Tensor, std::less<>> gradients_;
};

// Expects every element within `tolerance` * (1 + |expected|).
void expectNear(const Values& actual, const Values& expected, double tolerance);

// Compiles `fetches`, runs them twice, and compares both runs with the reference.
void expectLikeReference(Device& device, const KernelTable& kernels, const graph::Graph& graph,
                         const Feeds& feeds, std::span<const graph::Output> fetches,
                         double tolerance, CompileOptions options = {});

// Expects the same bits from both kernel tables, from `other` in two runs.
void expectSameBits(Device& device, const KernelTable& kernels, const KernelTable& other,
                    const graph::Graph& graph, const Feeds& feeds,
                    std::span<const graph::Output> fetches, CompileOptions options = {});

// Returns floats in [low, high), as doubles.
Values randomValues(Random& random, int64_t count, float low = -1, float high = 1);
Values randomIntegers(Random& random, int64_t count, uint64_t below);

}  // namespace dtf::runtime::testing
