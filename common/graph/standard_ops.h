#pragma once

// The chapters of standardOps(). Internal to common/graph; each .cc file starts with its ops, their
// inputs, attributes and outputs: the contract of their kernels.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/op_def.h"

namespace dtf::graph {

void addMathOps(
    OpCatalog& catalog);  // standard_math_ops.cc: element by element, products, reductions
void addNnOps(
    OpCatalog& catalog);  // standard_nn_ops.cc: activations, losses, metrics and their gradients
void addImageOps(OpCatalog& catalog);    // standard_image_ops.cc: convolutions, pooling
void addNormOps(OpCatalog& catalog);     // standard_norm_ops.cc: of batches and layers
void addArrayOps(OpCatalog& catalog);    // standard_array_ops.cc: parts of tensors, rows of tables
void addRandomOps(OpCatalog& catalog);   // standard_random_ops.cc: numbers drawn from seeds
void addControlOps(OpCatalog& catalog);  // standard_control_ops.cc: branches and loops
void addStateOps(
    OpCatalog& catalog);  // standard_state_ops.cc: feeds, constants, variables, other tasks
void addTrainingOps(
    OpCatalog& catalog);  // standard_training_ops.cc: optimizers, initializers, clipping
void addSyncOps(OpCatalog& catalog);  // standard_sync_ops.cc: gradients of several clients
// Checks the attributes of a Variable's initial value.
// Errors: kBadConfig.
void wantInitializer(const std::string& initializer, int64_t stream);
// Returns the gradients of a ClipByGlobalNorm that are of rows.
// Errors: kBadConfig for a list that can't be read.
std::vector<size_t> sparseGradients(const Attributes& attributes);
void addQueueOps(OpCatalog& catalog);  // standard_queue_ops.cc: queues

}  // namespace dtf::graph
