#pragma once

// A step of an optimizer on one variable and its slots, with the formulae of a parameter server.

#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/optimizer_spec.h"
#include "common/engine/host_act.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/sparse_gradient.h"

namespace dtf::engine {

// ApplyOptimizer or ApplySparseOptimizer. The values have the bits of a job's parameter server that
// applies the same gradients.
// Owns: working memory: for lars, lamb, and tables of which every row moves, as large as the
// variable; for other tables as large as the rows of a batch.
// Threads: thread-compatible; run() in the device's thread.
// Blocks: computes, in one thread.
// Errors: kBadConfig with the node for settings that don't work, another number of slots, or one
// variable in two places; kTrainingFailed for a step out of range or an index that is no row.
// Nothing has changed then.
class OptimizerAct final : public HostAct {
 public:
  OptimizerAct(const graph::Graph& part, const graph::Node& node);

  void run(std::span<Variable* const> variables,
           std::span<const std::span<const std::byte>> inputs) override;

 private:
  // The memory of one run: the variable, then its slots.
  struct Arrays {
    std::vector<const float*> before;
    std::vector<float*> after;
  };

  [[noreturn]] void refuse(ErrorCode code, const std::string& why) const;
  void checkVariables(std::span<Variable* const> variables) const;
  optimizer::OptimizerClock::State clockAt(uint64_t applies) const;
  optimizer::UpdateConstants constantsAt(std::span<const std::byte> step);
  void readRows(std::span<const std::span<const std::byte>> inputs);
  void change(std::span<Variable* const> variables, Arrays& arrays,
              const optimizer::UpdateConstants& constants, const float* gradient);
  void apply(const Arrays& arrays, const optimizer::UpdateConstants& constants,
             const float* gradient);
  void applyDense(const optimizer::UpdateArrays& all, const optimizer::UpdateConstants& constants);
  void applyWhole(const optimizer::UpdateArrays& all, const optimizer::UpdateConstants& constants);
  void applyAllRows(const optimizer::UpdateArrays& all,
                    const optimizer::UpdateConstants& constants);
  void applyNamedRows(const optimizer::UpdateArrays& all,
                      const optimizer::UpdateConstants& constants);
  // Returns `all` with a copy of its old parameters, if they are changed in place.
  optimizer::UpdateArrays apart(optimizer::UpdateArrays all);

  const std::string name_, op_;
  const cluster::OptimizerSpec spec_;
  const uint32_t slots_;
  const graph::TensorSpec variable_;
  optimizer::OptimizerClock clock_;
  const bool is_sparse_;
  optimizer::LookUp look_up_;       // of a sparse update: its types
  optimizer::SparseGradient rows_;  // of the last run
  std::vector<float> old_, named_;  // working memory
};

}  // namespace dtf::engine
