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
#include "common/runtime/compiled_step.h"
#include "common/tensor/tensor.h"
#include "common/train/model_part.h"
#include "common/train/sparse_gradient.h"

namespace dtf::train {

// Hears of a training step while it computes, on the thread that runs it.
class GradientListener {
 public:
  virtual ~GradientListener() = default;
  virtual void onLoss(float loss) = 0;
  // The gradients of these variables are where they were bound, and stay as they are. Each once;
  // what forwards has made, such as the statistics of a batch, may be ahead of the loss.
  virtual void onGradients(std::span<const uint32_t> variables) = 0;
};

// Owns: the compiled step.
// Borrows: the device; the bound batch, values and gradients until they are bound anew.  Movable.
// Threads: thread-compatible.
// Blocks: run() computes.
// Errors: those of trainingPart(), of runtime::compile and of the kernels.
class ModelStep {
 public:
  // To see how good a model is: the whole graph, with loss, accuracy and outputs as results.
  ModelStep(const model::ModelGraph& model, const runtime::KernelTable& kernels,
            runtime::Device& device);
  // For training: trainingPart() of `model`, with the loss and the gradients as results. `kept`:
  // the variables that the device keeps, which are never bound; null: none.
  ModelStep(const model::ModelGraph& model, const engine::TaskPart& part, const ComputeDevice& on,
            const runtime::KeptVariables* kept = nullptr);

  int64_t batchSize() const { return batch_size_; }
  // The next runs read batchSize() examples where they lie: their parts in the order of
  // model::inputsOf(), of the types and shapes that the model was built for.
  void bindExamples(std::span<const std::byte* const> parts);
  // Those of `batch` from `first` on.
  void bindExamples(const data::Batch& batch, int64_t first);

  // What the dropout masks of the next runs are drawn from; nothing where there is no dropout.
  void setRandomKey(uint64_t seed, uint64_t batch);

  // Variables by their place in model::ModelGraph::variables. A value or gradient is bound until it
  // is bound anew. A step that doesn't read a value needs none.
  void bindValue(uint32_t variable, const float* value);
  // Not of a sparse variable.
  void bindGradient(uint32_t variable, float* gradient);
  // Of a sparse variable: where the gradients of what it looks up go, of the shape of
  // model::ModelVariable::gradient.
  void bindRows(uint32_t variable, float* rows);
  bool isSparse(uint32_t variable) const { return look_ups_[variable].count > 0; }
  // Of a sparse variable, after run(): what it read, and the gradients of that. Until the next
  // run().
  LookUp lookUp(uint32_t variable) const;

  const runtime::StepPlan& plan() const { return step_->plan(); }

  void run() { step_->run(); }
  // For training, without sparse variables.
  void run(GradientListener& listener);
  // That the device computed in the last run, where it says so.
  std::optional<double> deviceSeconds() const { return step_->deviceSeconds(); }
  // As of CompiledStep.
  std::vector<double> profile() { return step_->profile(); }
  // Of the last run.
  float loss() const { return step_->fetch(0)[0]; }
  bool hasAccuracy() const { return has_accuracy_; }
  float accuracy() const { return step_->fetch(1)[0]; }  // hasAccuracy()
  // The last layer's, [batch, units]; where the model has metrics, and isn't trained.
  std::span<const float> outputs() const { return step_->fetch(has_accuracy_ ? 2 : 1); }

 private:
  class Translator;
  int inputOf(const engine::TaskPart& part, const std::string& placeholder) const;
  void bindInput(int handle, const std::byte* data);
  void addLookUp(const model::ModelGraph& model, const model::ModelVariable& variable);

  int64_t batch_size_;
  // Of model::inputsOf().
  struct Input {
    graph::TensorSpec spec;
    int handle = 0;
    const std::byte* bound = nullptr;
  };
  std::vector<Input> inputs_;
  Tensor random_key_;  // empty where nothing is drawn
  bool has_accuracy_ = false;
  std::unique_ptr<runtime::CompiledStep> step_;
  std::vector<int> value_handles_;
  std::vector<int> gradient_handles_;
  std::vector<uint32_t> trained_;        // variables, by the handles of their gradients
  std::vector<uint32_t> told_;           // of a listener
  std::vector<LookUp> look_ups_;         // by variable; count 0: dense
  std::vector<size_t> look_up_inputs_;   // by variable: which input it is looked up by
  std::vector<const std::byte*> share_;  // of a batch
};

}  // namespace dtf::train
