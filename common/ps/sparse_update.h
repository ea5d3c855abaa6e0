#pragma once

// Updates of single rows of a variable, as TensorFlow applies IndexedSlices (the gradient of an
// embedding lookup). The graph has no op yet whose gradient is sparse, so no model reaches this; it
// is the ps' half of such an op.

#include <array>
#include <cstdint>
#include <span>

#include "common/ps/optimizer.h"

namespace dtf::ps {

// A variable of `rows` x `row_elements` and its slots, updated in place.
// Borrows: the arrays.
struct SparseTable {
  float* parameters = nullptr;
  std::array<float*, kSlotsMax> slots{};  // nullptr where the kind has none
  uint64_t rows = 0;
  uint64_t row_elements = 0;
};

// values[i * row_elements ...] is the gradient of row rows[i]. A row may come several times: its
// gradients are summed first, in order of appearance, then clipped, and applied once.
//   gradient_descent, momentum, adagrad, adadelta, rmsprop, ftrl
//                  the rows named, and nothing of the others: their slots don't decay
//   lars           the same, by momentum's rule, as TensorFlow's: no trust ratio, no decay
//   adam, adamw    ALL rows move, with a gradient of 0 where none is named; adamw's weight decay is
//                  that of the rows named alone
//   lamb           all rows, norms and weight decay over all rows: the dense update
//   L2 (weight_decay of the other kinds)  the rows named
//   moving average all rows
// Cost: the rows named, or the whole table where all rows move or are averaged.
// Errors: kBadData for a row beyond the table, before anything is changed.
void updateRows(const UpdateConstants& constants, const SparseTable& table,
                std::span<const int64_t> rows, std::span<const float> values);

}  // namespace dtf::ps
