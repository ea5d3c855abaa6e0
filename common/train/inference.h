#pragma once

// A trained model applied: examples in, outputs out. No cluster, no labels, no state besides the
// memory of a batch.

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
// Errors: the constructor as model::buildInferenceGraph() and runtime::compile(); run() those of
// the kernels.
class Inference {
 public:
  // Dropout is left out, as in an evaluation.
  Inference(const model::ModelSpec& model, const runtime::KernelTable& kernels,
            runtime::Device& device);

  // The variables in the order of the model.
  void bindValues(std::span<const float* const> values);

  // What it reads and gives, of one example.
  const graph::TensorSpec& features() const { return inputs_[0].of_one; }
  int64_t units() const { return units_; }

  // `outputs`: count * units() numbers, see model::outputName(). Valid until it returns.
  using Take = std::function<void(int64_t first, std::span<const float> outputs)>;
  // Applies the model to examples, of which each of `parts` lies one after another: the features as
  // features() says, then the categories that are fed beside them. Gives `take`
  // the outputs of one piece after another. What comes out for an example doesn't depend on its
  // neighbours.
  void run(std::span<const std::span<const std::byte>> parts, const Take& take);

 private:
  struct Input {
    graph::TensorSpec of_one;
    Tensor batch;
  };
  std::vector<Input> inputs_;
  int64_t units_ = 0;
  std::unique_ptr<runtime::CompiledStep> step_;
  std::vector<int> value_handles_;  // kUnread: outputs don't depend on that variable
};

}  // namespace dtf::train
