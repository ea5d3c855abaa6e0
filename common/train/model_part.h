#pragma once

// What one task computes in each step of a model. It goes through the master's passes
// (engine/plan.h), as a session's step does: pruned to what is fetched and updated, constants
// folded, equal nodes joined, partitioned.

#include <cstdint>
#include <memory>
#include <span>

#include "common/engine/task_part.h"
#include "common/graph/graph.h"
#include "common/graph/placer.h"
#include "common/model/model_graph.h"
#include "common/runtime/compiled_step.h"
#include "common/runtime/device.h"
#include "common/runtime/kernel.h"

namespace dtf::train {

// Borrowed, the first two. Value type.
struct ComputeDevice {
  runtime::Device* device = nullptr;
  const runtime::KernelTable* kernels = nullptr;
  // Of training steps:
  Precision precision = Precision::kFloat32;
  size_t told_bytes =
      0;  // a listener hears of gradients in buckets of so much, see runtime::TransferOptions
};

// For training, by worker `rank`: the loss is what it fetches. Variables on ps have become pulls
// and pushes; all placeholders of the model are fed. Constants are computed by `on` where that is a
// CPU, else by a CPU of its own.
// Errors: kBadConfig when the placement gives something to a third task: nobody would run it; those
// of the kernels that compute constants.
engine::TaskPart trainingPart(const model::ModelGraph& model, const graph::Placement& placement,
                              uint32_t rank, const ComputeDevice& on);

// All that `fetches` need, by one task, with the variables.
engine::TaskPart localPart(const model::ModelGraph& model, std::span<const graph::Output> fetches,
                           const ComputeDevice& on);

// Compiled, as one program. `kept`: the variables that the device keeps; null: none. Nothing of
// `part` is kept. Errors: those of runtime::compile.
std::unique_ptr<runtime::CompiledStep> compilePart(const engine::TaskPart& part,
                                                   const ComputeDevice& on,
                                                   const runtime::KeptVariables* kept = nullptr);

}  // namespace dtf::train
