#pragma once

// The towers of one worker as one step: they share the variables, each computes its share of the
// batch on its own device, and the mean of their gradients, each weighed by the examples of its
// share, is what the worker pushes: the gradient of the whole batch. Batch normalisation sees the
// share of its tower, as on TensorFlow's; what its moving averages are sent is the mean over the
// towers, like a gradient.

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

// What towers compute on. Borrowed, all of it. Value type.
struct TowerDevices {
  std::vector<ComputeDevice> each;           // one at least
  runtime::ComputePool* together = nullptr;  // whose threads run them; none: one after another
};

// What one tower computes. Borrowed.
struct TowerProgram {
  const model::ModelGraph& model;
  const engine::TaskPart& part;
};

// Owns: the towers, and memory for what they looked up in sparse variables.
// Borrows: devices and threads, which must outlive this; the batch and what is in `binding` while
// it computes.
// Threads: thread-compatible; works on the threads of `together`.
// Blocks: compute(), until all towers are done.
// Errors: those of the kernels, of the first tower that has any. Nothing is in `binding` then.
class TowerGroup {
 public:
  // `towers`: of each, on its share of the batch; they differ in the number of examples alone. Not
  // more than there are devices. `kept`: the variables of each device, which keeps them, and which
  // are not in `binding` then, for equal shares on all of them (DTF_CHECK); none: all are.
  TowerGroup(std::span<const TowerProgram> towers, const TowerDevices& devices,
             const std::vector<const runtime::KeptVariables*>& kept = {});
  // All devices have equal shares.
  TowerGroup(const model::ModelGraph& model, const engine::TaskPart& part,
             const TowerDevices& devices,
             const std::vector<const runtime::KeptVariables*>& kept = {})
      : TowerGroup(std::vector<TowerProgram>(devices.each.size(), {model, part}), devices, kept) {}

  // Of the largest share.
  const runtime::StepPlan& plan() const { return towers_.front().step().plan(); }
  int64_t examples() const { return examples_; }

  // The batch that the key belongs to is `number`.
  struct Batch {
    const data::Batch& examples;
    uint64_t seed = 0;
    uint64_t number = 0;
  };
  // Leaves the mean gradient in `binding`, or each tower's on its device; returns the mean loss.
  // The order of all sums is fixed: the bits don't depend on which tower is faster, nor on the
  // number of threads. Allocates nothing but what SparseGradient does. `listener`, of one tower
  // alone: hears of its gradients while it computes, the last ones with the error of a kernel still
  // to come; null: nobody does.
  float compute(const Batch& batch, ParameterBinding& binding,
                GradientListener* listener = nullptr);

 private:
  // A piece of a variable whose mean one thread takes.
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
  void weighRows(size_t table, const LookUp& all);
  bool hasEqualShares() const { return weights_.empty(); }
  template <class F>
  void forEach(size_t parts, const F& f) const;
  uint32_t size() const { return static_cast<uint32_t>(towers_.size()); }

  runtime::ComputePool* const together_;
  const bool are_kept_;  // the variables, by the devices
  std::vector<Tower> towers_;
  int64_t examples_ = 0;         // of all towers
  std::vector<float> weights_;   // of each tower, of which the sum is 1; empty: equal ones
  std::vector<Buffer> rows_;     // of each sparse variable: of the first tower, then the next
  std::vector<Piece> pieces_;    // of the variables that aren't sparse; none with one tower
  std::vector<float*> targets_;  // by variable: the first tower's gradient, where the mean will be
};

}  // namespace dtf::train
