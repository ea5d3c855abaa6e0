#pragma once

// The model compiled for one device and one batch size.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/data/part.h"
#include "common/model/model_graph.h"
#include "common/optimizer/sparse_gradient.h"
#include "common/runtime/compiled_step.h"
#include "common/tensor/tensor.h"
#include "common/train/model_part.h"

namespace dtf::train {

// Receives results of a training step while it computes, on the thread that runs it.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  virtual void onLoss(float loss) = 0;
  // The gradients of these variables are final, in their bound memory. Called once for each
  // variable. Results of the forward pass, such as the statistics of a batch, may come before the
  // loss.
  virtual void onGradients(std::span<const uint32_t> variables) = 0;
};

// A compiled step. Movable.
// Owns: the compiled step.
// Borrows: the device; the bound batch, values and gradients until they are bound anew.
// Threads: thread-compatible.
// Blocks: run() computes.
// Errors: as trainingPart(), runtime::compile() and the kernels.
class ModelStep {
 public:
  // For evaluation: the whole graph, with loss, accuracy and outputs as results.
  ModelStep(const model::ModelGraph& model, const runtime::KernelTable& kernels,
            runtime::Device& device);
  // For training: `part` is trainingPart() of `model`, with the loss and the gradients as results.
  // `kept`: the variables that the device keeps, which are never bound; null: none.
  ModelStep(const model::ModelGraph& model, const engine::TaskPart& part, const ComputeDevice& on,
            const runtime::KeptVariables* kept = nullptr);

  int64_t batchSize() const { return batch_size_; }
  // Makes the next runs read batchSize() examples in place. `parts`: in the order of
  // model::inputsOf(), with the types and shapes that the model was built for.
  void bindExamples(std::span<const std::byte* const> parts);
  // Binds the examples of `batch` from `first` on.
  void bindExamples(const data::Batch& batch, int64_t first);

  // Sets the key for the dropout masks of the next runs; no effect without dropout.
  void setRandomKey(uint64_t seed, uint64_t batch);

  // A variable's number is its place in model::ModelGraph::variables. A value or gradient is bound
  // until it is bound anew. A value that the step doesn't read need not be bound.
  void bindValue(uint32_t variable, const float* value);
  // The variable must not be sparse.
  void bindGradient(uint32_t variable, float* gradient);
  // For a sparse variable: binds the memory for the gradients of looked-up rows, of the shape of
  // model::ModelVariable::gradient.
  void bindRows(uint32_t variable, float* rows);
  bool isSparse(uint32_t variable) const { return look_ups_[variable].count > 0; }
  // Returns the rows of a sparse variable that the last run() read, and their gradients. Valid
  // until the next run().
  optimizer::LookUp lookUp(uint32_t variable) const;

  const runtime::StepPlan& plan() const { return step_->plan(); }

  void run() { step_->run(); }
  // For training, without sparse variables.
  void run(GradientListener& listener);
  // Returns the device's computing time of the last run, if it reports one.
  std::optional<double> deviceSeconds() const { return step_->deviceSeconds(); }
  // See CompiledStep::profile().
  std::vector<double> profile() { return step_->profile(); }
  // Results of the last run.
  float loss() const { return step_->fetch(0)[0]; }
  bool hasAccuracy() const { return has_accuracy_; }
  float accuracy() const { return step_->fetch(1)[0]; }  // needs hasAccuracy()
  // Outputs of the last layer, [batch, units]; only for evaluation of a model with metrics.
  std::span<const float> outputs() const { return step_->fetch(has_accuracy_ ? 2 : 1); }
  // Scalar `index` of model::ModelGraph::scalars; only for evaluation.
  float scalar(size_t index) const {
    return step_->fetch(1 + has_accuracy_ + has_outputs_ + static_cast<int>(index))[0];
  }

 private:
  class Translator;
  int inputOf(const engine::TaskPart& part, const std::string& placeholder) const;
  void bindInput(int handle, const std::byte* data);
  void addLookUp(const model::ModelGraph& model, const model::ModelVariable& variable);

  int64_t batch_size_;
  // One of model::inputsOf().
  struct Input {
    graph::TensorSpec spec;
    int handle = 0;
    const std::byte* bound = nullptr;
  };
  std::vector<Input> inputs_;
  Tensor random_key_;  // empty without dropout
  bool has_accuracy_ = false, has_outputs_ = false;
  std::unique_ptr<runtime::CompiledStep> step_;
  std::vector<int> value_handles_;
  std::vector<int> gradient_handles_;
  std::vector<uint32_t> trained_;            // variables, by the handles of their gradients
  std::vector<uint32_t> told_;               // to report to a listener
  std::vector<optimizer::LookUp> look_ups_;  // by variable; count 0: dense
  std::vector<size_t> look_up_inputs_;       // by variable: the input with its ids
  std::vector<const std::byte*> share_;      // parts of the bound batch
};

}  // namespace dtf::train
