#pragma once

// Updates of single rows of a variable, as TensorFlow applies IndexedSlices (the gradient of an
// embedding lookup).

#include <cstdint>
#include <span>

#include "common/arena/gradient_layout.h"
#include "common/cluster/optimizer_spec.h"
#include "common/optimizer/optimizer.h"

namespace dtf::optimizer {

// Whether tables may be updated by rows: not when an element's update needs the whole variable
// (lars, lamb), nor with L2 regularisation, which has a dense gradient, as in TensorFlow.
bool updatesRows(const cluster::OptimizerSpec& optimizer);

// Whether an update moves the rows that no gradient names, too (adam, adamw).
bool movesOtherRows(cluster::OptimizerSpec::Kind kind);

// How rows that don't move get into the new parameters: by a copy, or they are there already.
enum class OtherRows : uint8_t { kCopied, kThere };

// Updates elements [begin, end) of the arena, all of them in `slice`. `gradients`: the rows of each
// gradient in it, in the order of summation. A row takes the mean of the gradients that name it,
// clipped.
//   gradient_descent, momentum, adagrad, adadelta, rmsprop, ftrl
//                  only the rows named; the slots of others don't decay
//   adam, adamw    ALL rows move, the others with a gradient of 0; adamw's weight decay is only for
//                  the rows named
//   moving average all rows
// The gradients of `arrays` are not used. Precondition: updatesRows(). The result doesn't depend on
// how a slice is split. Thread-safe for disjoint ranges.
void updateRows(const UpdateConstants& constants, const UpdateArrays& arrays,
                const arena::SparseSlice& slice, std::span<const arena::RowsView> gradients,
                uint64_t begin, uint64_t end, OtherRows others);

}  // namespace dtf::optimizer
