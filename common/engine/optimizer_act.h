#pragma once

// A step of an optimizer on one variable and its slots, with the formulae of a parameter server.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/arena/gradient_layout.h"
#include "common/cluster/optimizer_spec.h"
#include "common/engine/host_act.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/sparse_gradient.h"
#include "common/runtime/processor.h"

namespace dtf::engine {

// The gradients of one step: dense ones, or looked-up rows. Their mean is taken, in this order.
struct StepGradients {
  std::span<const float* const> dense;
  std::span<const optimizer::LookUp> rows;
};

// Updates a variable and its slots. The values have the bits of a job's parameter server that
// applies the same gradients.
// Owns: working memory: for lars, lamb, and tables of which every row moves, as large as the
// variable; for other tables as large as the rows of a batch.
// Threads: thread-compatible; run() in the device's thread.
// Blocks: computes, on the threads of `pool`, or in one. Borrows: the pool.
// Errors: kBadConfig with the node for settings that don't work, another number of slots, or one
// variable in two places; kTrainingFailed for a step out of range or an index that is no row.
// Nothing has changed then.
class OptimizerUpdate {
 public:
  // `node` has the attribute `optimizer`; `slots`: variables beside the trained one.
  OptimizerUpdate(const graph::Node& node, const graph::TensorSpec& variable, size_t slots,
                  bool is_sparse, runtime::ComputePool* pool = nullptr);

  // `variables`: the trained one, then its slots; `step`: of the schedule.
  void run(std::span<Variable* const> variables, const StepGradients& gradients, int64_t step);

  const graph::TensorSpec& variable() const { return variable_; }

 private:
  // The memory of one run: the variable, then its slots.
  struct Arrays {
    std::vector<const float*> before;
    std::vector<float*> after;
  };
  using Dense = std::span<const float* const>;

  [[noreturn]] void refuse(ErrorCode code, const std::string& why) const;
  void checkVariables(std::span<Variable* const> variables) const;
  optimizer::OptimizerClock::State clockAt(uint64_t applies) const;
  optimizer::UpdateConstants constantsAt(int64_t step);
  void readRows(std::span<const optimizer::LookUp> look_ups);
  std::vector<arena::RowsView> rowsOfAll() const;
  std::vector<uint32_t> namedRows() const;
  void change(std::span<Variable* const> variables, Arrays& arrays,
              const optimizer::UpdateConstants& constants, Dense gradients);
  void apply(const Arrays& arrays, const optimizer::UpdateConstants& constants, Dense gradients);
  void applyDense(const optimizer::UpdateArrays& all, const optimizer::UpdateConstants& constants);
  static void updateInPlace(const optimizer::UpdateArrays& all,
                            const optimizer::UpdateConstants& constants, uint64_t begin,
                            uint64_t end);
  void applyWhole(const optimizer::UpdateArrays& all, const optimizer::UpdateConstants& constants);
  void applyAllRows(const optimizer::UpdateArrays& all,
                    const optimizer::UpdateConstants& constants);
  void applyNamedRows(const optimizer::UpdateArrays& all,
                      const optimizer::UpdateConstants& constants);
  // Calls use(begin, end) for ranges that cover [0, elements), on all threads. The results don't
  // depend on the split.
  template <class Use>
  void inRanges(uint64_t elements, const Use& use) const {
    constexpr int64_t kWorkOfEach = 8, kGrain = 64;
    threads_.forRanges(static_cast<int64_t>(elements), kWorkOfEach, kGrain,
                       runtime::Processor::kPartsEach, [&](int64_t begin, int64_t end, int) {
                         use(static_cast<uint64_t>(begin), static_cast<uint64_t>(end));
                       });
  }
  // Returns `all` with a copy of its old parameters, if they are changed in place.
  optimizer::UpdateArrays apart(optimizer::UpdateArrays all);

  const std::string name_, op_;
  const cluster::OptimizerSpec spec_;
  const uint32_t slots_;
  const graph::TensorSpec variable_;
  optimizer::OptimizerClock clock_;
  const bool is_sparse_;
  const runtime::Processor threads_;
  std::vector<optimizer::SparseGradient> rows_;  // of the last run
  std::vector<float> old_, named_;               // working memory
};

// ApplyOptimizer or ApplySparseOptimizer. All else as OptimizerUpdate.
class OptimizerAct final : public HostAct {
 public:
  OptimizerAct(const graph::Graph& part, const graph::Node& node,
               runtime::ComputePool* pool = nullptr);

  void run(std::span<Variable* const> variables,
           std::span<const std::span<const std::byte>> inputs) override;

 private:
  const bool is_sparse_;
  OptimizerUpdate update_;
  optimizer::LookUp look_up_;  // of a sparse update: its types
};

}  // namespace dtf::engine
