#include "common/optimizer/sparse_update.h"

#include <algorithm>
#include <cstring>

#include "common/arena/row_merge.h"
#include "common/base/check.h"
#include "common/cluster/spec.h"
#include "common/optimizer/gradient_math.h"
#include "common/optimizer/optimizer_kernels.h"

namespace dtf::optimizer {

namespace {

using Kind = cluster::OptimizerSpec::Kind;

// The constants for a row that is named, and for one that isn't.
struct RowRules {
  UpdateConstants named;
  UpdateConstants other;
  bool move_others = false;
  OtherRows others = OtherRows::kCopied;
};

RowRules rulesOf(const UpdateConstants& constants, OtherRows others) {
  DTF_CHECK(!cluster::needsWholeVariables(constants.kind) && constants.l2 == 0);
  RowRules rules{constants, constants, movesOtherRows(constants.kind), others};
  rules.other.weight_decay = 0;
  return rules;
}

// Updates elements [begin, end) of one row that is named; `row_begin` is its first.
void updateNamed(const UpdateConstants& c, const UpdateArrays& arrays,
                 std::span<const float* const> values, uint64_t row_begin, uint64_t begin,
                 uint64_t end) {
  alignas(64) float buffer[kChunkElements];
  const UpdateArrays of_row{.gradients = values, .weights = {}};
  for (uint64_t at = begin; at < end; at += kChunkElements) {
    const uint64_t n = std::min(kChunkElements, end - at);
    const float* const gradient = effectiveGradient(c, of_row, at - row_begin, n, buffer);
    applyKernel(c, kernelArrays(arrays, gradient, at, n));
  }
}

void updateOthers(const RowRules& rules, const UpdateArrays& arrays, uint64_t begin, uint64_t end) {
  if (begin == end) return;
  if (!rules.move_others) {
    if (rules.others == OtherRows::kThere) return;
    std::memcpy(arrays.new_parameters + begin, arrays.old_parameters + begin,
                (end - begin) * sizeof(float));
    return;
  }
  alignas(64) static constexpr float kZeros[kChunkElements] = {};
  for (uint64_t at = begin; at < end; at += kChunkElements)
    applyKernel(rules.other, kernelArrays(arrays, kZeros, at, std::min(kChunkElements, end - at)));
}

}  // namespace

bool movesOtherRows(Kind kind) {
  return kind == Kind::kAdam || kind == Kind::kAdamW;
}

bool updatesRows(const cluster::OptimizerSpec& optimizer) {
  const bool takes_no_l2 = optimizer.kind == Kind::kAdamW || optimizer.kind == Kind::kFtrl;
  return !cluster::needsWholeVariables(optimizer.kind) &&
         (optimizer.weight_decay == 0 || takes_no_l2);
}

void updateRows(const UpdateConstants& constants, const UpdateArrays& arrays,
                const arena::SparseSlice& slice, std::span<const arena::RowsView> gradients,
                uint64_t begin, uint64_t end, OtherRows others) {
  DTF_CHECK(slice.offset <= begin && begin <= end && end <= slice.end() && !gradients.empty());
  DTF_CHECK(arrays.new_parameters != arrays.old_parameters);
  if (begin == end) return;
  const RowRules rules = rulesOf(constants, others);
  uint64_t at = begin;
  for (arena::RowMerge named(gradients, slice.row_elements,
                             (begin - slice.offset) / slice.row_elements);
       !named.done(); named.next()) {
    const uint64_t row_begin = slice.offset + named.row() * slice.row_elements;
    if (row_begin >= end) break;
    const uint64_t first = std::max(row_begin, begin);
    updateOthers(rules, arrays, at, first);
    at = std::min(row_begin + slice.row_elements, end);
    updateNamed(rules.named, arrays, named.values(), row_begin, first, at);
  }
  updateOthers(rules, arrays, at, end);
  if (constants.average_slot == kSlotsMax) return;
  DTF_CHECK(arrays.slots.at(constants.average_slot) != nullptr);
  moveAverage(arrays.slots[constants.average_slot] + begin, arrays.new_parameters + begin,
              constants.one_minus_average_decay, end - begin);
}

}  // namespace dtf::optimizer
