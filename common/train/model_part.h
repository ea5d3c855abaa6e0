#pragma once

// The part of a model's step that one task computes. It goes through the master's passes
// (engine/plan.h) like a session's step: pruning to fetches and updates, constant folding, joining
// of equal nodes, partitioning.

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

// A device to compute on. Borrows: the device and the kernels. Value type.
struct ComputeDevice {
  runtime::Device* device = nullptr;
  const runtime::KernelTable* kernels = nullptr;
  // For training steps:
  Precision precision = Precision::kFloat32;
  // Bytes of each bucket of gradients that a listener receives, see runtime::TransferOptions.
  size_t told_bytes = 0;
};

// Returns the part that worker `rank` trains, which fetches the loss. Variables on ps are pulls and
// pushes, and all placeholders of the model are fed. Constants are computed by `on` if it is a CPU,
// else by a CPU of its own.
// Errors: kBadConfig if the placement gives a node to a third task, as nobody would run it; as the
// kernels that compute constants.
engine::TaskPart trainingPart(const model::ModelGraph& model, const graph::Placement& placement,
                              uint32_t rank, const ComputeDevice& on);

// Returns the part that computes `fetches` on one task, with the variables.
engine::TaskPart localPart(const model::ModelGraph& model, std::span<const graph::Output> fetches,
                           const ComputeDevice& on);

// Compiles `part` to one program, which keeps no reference to it. `kept`: the variables that the
// device keeps; null: none.
// Errors: as runtime::compile().
std::unique_ptr<runtime::CompiledStep> compilePart(const engine::TaskPart& part,
                                                   const ComputeDevice& on,
                                                   const runtime::KeptVariables* kept = nullptr);

}  // namespace dtf::train
