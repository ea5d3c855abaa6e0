#pragma once

// Applies a trained model: examples in, outputs out. It needs no cluster and no labels, and has no
// state but the memory of a batch.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/graph/graph.h"
#include "common/model/model_spec.h"
#include "common/runtime/compiled_step.h"
#include "common/runtime/device.h"
#include "common/tensor/tensor.h"

namespace dtf::train {

// Owns: the compiled model and the memory of one batch.
// Borrows: the device and the values, until they are bound anew.
// Threads: thread-compatible.
// Blocks: run() computes.
// Errors: the constructor as model::buildInferenceGraph() and runtime::compile(); run() as the
// kernels.
class Inference {
 public:
  // Dropout is left out, as in an evaluation.
  Inference(const model::ModelSpec& model, const runtime::KernelTable& kernels,
            runtime::Device& device);

  // Binds the variables, in the model's order.
  void bindValues(std::span<const float* const> values);

  // The features, and the number of outputs, of one example.
  const graph::TensorSpec& features() const { return inputs_[0].of_one; }
  int64_t units() const { return units_; }

  // `outputs`: count * units() numbers, see model::outputName(). Valid until it returns.
  using Take = std::function<void(int64_t first, std::span<const float> outputs)>;
  // Applies the model to examples, and gives `take` the outputs of one piece after another. Each of
  // `parts` has one input of all examples: the features, see features(), then the categories fed
  // beside them. An example's outputs don't depend on its neighbours.
  void run(std::span<const std::span<const std::byte>> parts, const Take& take);

 private:
  struct Input {
    graph::TensorSpec of_one;
    Tensor batch;
  };
  std::vector<Input> inputs_;
  int64_t units_ = 0;
  std::unique_ptr<runtime::CompiledStep> step_;
  std::vector<int> value_handles_;  // kUnreadValue: not read
};

}  // namespace dtf::train
