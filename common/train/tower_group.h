#pragma once

// The towers of one worker as one step. They share the variables, and each computes its share of
// the batch on its own device. The worker pushes the mean of their gradients, weighed by the
// examples of each share: the gradient of the whole batch. Batch normalisation sees the share of
// its tower, as TensorFlow's does. Its moving averages get the mean over the towers, like a
// gradient.

#include <cstdint>
#include <span>
#include <vector>

#include "common/data/part.h"
#include "common/model/model_graph.h"
#include "common/runtime/compute_pool.h"
#include "common/tensor/buffer.h"
#include "common/train/parameter_binding.h"
#include "common/train/tower.h"

namespace dtf::train {

// The devices and threads of towers. Borrows: all of them. Value type.
struct TowerDevices {
  std::vector<ComputeDevice> each;           // at least one
  runtime::ComputePool* together = nullptr;  // runs the towers; null: one after another
};

// The program of one tower. Borrows: both.
struct TowerProgram {
  const model::ModelGraph& model;
  const engine::TaskPart& part;
};

// Owns: the towers, and memory for the gradients of rows that they look up.
// Borrows: devices and threads, which must outlive this; the batch and the memory of `binding`
// during compute().
// Threads: thread-compatible; works on the threads of `together`.
// Blocks: compute(), until all towers are done.
// Errors: as the kernels: of the first tower that failed. `binding` then has no gradient.
class TowerGroup {
 public:
  // `towers`: the program of each for its share of the batch; they differ only in the number of
  // examples. There are at most as many as devices. `kept`: the variables that each device keeps,
  // which are then not in `binding`; all shares must be equal (DTF_CHECK). Empty if no device keeps
  // variables.
  TowerGroup(std::span<const TowerProgram> towers, const TowerDevices& devices,
             const std::vector<const runtime::KeptVariables*>& kept = {});
  // Gives all devices equal shares.
  TowerGroup(const model::ModelGraph& model, const engine::TaskPart& part,
             const TowerDevices& devices,
             const std::vector<const runtime::KeptVariables*>& kept = {})
      : TowerGroup(std::vector<TowerProgram>(devices.each.size(), {model, part}), devices, kept) {}

  // Returns the plan of the step for the largest share.
  const runtime::StepPlan& plan() const { return towers_.front().step().plan(); }
  int64_t examples() const { return examples_; }

  // A batch, with the seed and number of its dropout masks.
  struct Batch {
    const data::Batch& examples;
    uint64_t seed = 0;
    uint64_t number = 0;
  };
  // Computes a batch. Leaves the mean gradient in `binding`, or each tower's on a device that keeps
  // the variables, and returns the mean loss. The order of all sums is fixed: the bits depend
  // neither on which tower is faster, nor on the number of threads. Allocates nothing but
  // SparseGradient's memory. `listener`: only for a single tower; may be null. Receives gradients
  // during the computation; after the last ones a kernel may still fail.
  float compute(const Batch& batch, ParameterBinding& binding,
                GradientListener* listener = nullptr);

 private:
  // A piece of a variable, for which one thread computes the mean.
  struct Piece {
    uint32_t variable = 0;
    uint64_t begin = 0, count = 0;
  };
  void addPieces(const model::ModelGraph& model);
  void addRows(const model::ModelGraph& model);
  void bind(const Batch& batch, ParameterBinding& binding);
  void bindVariables(ParameterBinding& binding);
  void run(GradientListener* listener);
  void takeMean();
  void joinRows(ParameterBinding& binding);
  void weighRows(size_t table, const optimizer::LookUp& all);
  bool hasEqualShares() const { return weights_.empty(); }
  template <class F>
  void forEach(size_t parts, const F& f) const;
  uint32_t size() const { return static_cast<uint32_t>(towers_.size()); }

  runtime::ComputePool* const together_;
  const bool are_kept_;  // the devices keep the variables
  std::vector<Tower> towers_;
  int64_t examples_ = 0;         // of all towers
  std::vector<float> weights_;   // by tower, with sum 1; empty: equal shares
  std::vector<Buffer> rows_;     // by sparse variable: rows of the first tower, then the next
  std::vector<Piece> pieces_;    // of variables that aren't sparse; none with one tower
  std::vector<float*> targets_;  // by variable: the first tower's gradient, where the mean will be
};

}  // namespace dtf::train
