#pragma once

// Updates of single rows of a variable, as TensorFlow applies IndexedSlices (the gradient of an
// embedding lookup).

#include <cstdint>
#include <span>

#include "common/cluster/optimizer_spec.h"
#include "common/ps/gradient_layout.h"
#include "common/ps/optimizer.h"

namespace dtf::ps {

// Whether tables may be updated by rows. Not where each element's update needs the whole variable
// (lars, lamb), nor with L2 regularisation, whose gradient is dense, as in TensorFlow.
bool updatesRows(const cluster::OptimizerSpec& optimizer);

// Whether an update moves the rows that no gradient names, too (adam, adamw).
bool movesOtherRows(cluster::OptimizerSpec::Kind kind);

// What becomes of rows that don't move: they are copied, or lie in the new parameters already.
enum class OtherRows : uint8_t { kCopied, kThere };

// Updates elements [begin, end) of the arena, all of them in `slice`. `gradients`: what each
// gradient has of it, in the order of summation; a row takes the mean of those that name it,
// clipped.
//   gradient_descent, momentum, adagrad, adadelta, rmsprop, ftrl
//                  the rows named, and nothing of the others: their slots don't decay
//   adam, adamw    ALL rows move, with a gradient of 0 where none is named; adamw's weight decay is
//                  that of the rows named alone
//   moving average all rows
// The gradients of `arrays` are not used. For optimizers of which updatesRows() says yes. The
// result doesn't depend on how a slice is split. Thread-safe for disjoint ranges.
void updateRows(const UpdateConstants& constants, const UpdateArrays& arrays,
                const SparseSlice& slice, std::span<const RowsView> gradients, uint64_t begin,
                uint64_t end, OtherRows others);

}  // namespace dtf::ps
