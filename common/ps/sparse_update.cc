#include "common/ps/sparse_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/ps/gradient_math.h"
#include "common/ps/optimizer_kernels.h"
#include "common/ps/slice_norms.h"

namespace dtf::ps {

namespace {

using Kind = cluster::OptimizerSpec::Kind;

// One gradient for each row that is named.
class RowGradients {
 public:
  RowGradients(const SparseTable& table, std::span<const int64_t> rows,
               std::span<const float> values)
      : row_elements_(table.row_elements), zeros_(table.row_elements) {
    DTF_CHECK(values.size() == rows.size() * row_elements_);
    for (const int64_t row : rows) {
      if (row < 0 || static_cast<uint64_t>(row) >= table.rows)
        throw Error(ErrorCode::kBadData, fmt::format("a gradient for row {} of a variable of {} "
                                                     "rows: look at the ids in the data",
                                                     row, table.rows));
    }
    for (size_t i = 0; i < rows.size(); ++i)
      add(static_cast<uint64_t>(rows[i]), values.data() + i * row_elements_);
  }

  const std::vector<uint64_t>& rows() const { return rows_; }  // by first appearance
  float* at(size_t index) { return sums_.data() + index * row_elements_; }
  bool names(uint64_t row) const { return index_.contains(row); }
  // Of any row: zeros where it isn't named.
  const float* of(uint64_t row) {
    const auto found = index_.find(row);
    return found == index_.end() ? zeros_.data() : at(found->second);
  }

 private:
  void add(uint64_t row, const float* values) {
    const auto [found, is_new] = index_.emplace(row, rows_.size());
    if (!is_new) return addInto(at(found->second), values, row_elements_);
    rows_.push_back(row);
    sums_.insert(sums_.end(), values, values + row_elements_);
  }

  uint64_t row_elements_;
  std::vector<float> zeros_;
  std::vector<uint64_t> rows_;
  std::vector<float> sums_;
  std::unordered_map<uint64_t, size_t> index_;
};

KernelArrays rowArrays(const SparseTable& table, uint64_t row, const float* gradient,
                       float* result) {
  const uint64_t begin = row * table.row_elements;
  KernelArrays x{table.parameters + begin, result, {}, gradient, table.row_elements};
  for (size_t i = 0; i < x.slots.size(); ++i)
    if (table.slots[i] != nullptr) x.slots[i] = table.slots[i] + begin;
  return x;
}

// Kernels don't work in place: the row goes by way of `result`.
void updateRow(const UpdateConstants& c, const SparseTable& table, uint64_t row,
               const float* gradient, std::vector<float>& result) {
  const KernelArrays x = rowArrays(table, row, gradient, result.data());
  applyKernel(c, x);
  std::memcpy(table.parameters + row * table.row_elements, result.data(), x.n * sizeof(float));
}

float trustRatioOf(const UpdateConstants& c, const SparseTable& table, RowGradients& gradients,
                   std::vector<float>& direction) {
  double parameters = 0;
  double updates = 0;
  for (uint64_t row = 0; row < table.rows; ++row) {
    const KernelArrays x = rowArrays(table, row, gradients.of(row), nullptr);
    lambDirection(c, x, direction.data());
    parameters += sumOfSquares({x.w, x.n});
    updates += sumOfSquares(direction);
  }
  return trustRatio(c, std::sqrt(parameters), std::sqrt(updates));
}

// What the kind does to a row that is named, and to one that isn't.
struct RowRules {
  UpdateConstants named;
  UpdateConstants other;
  bool all_rows = false;
};

RowRules rulesOf(const UpdateConstants& constants) {
  RowRules rules{constants, constants, false};
  switch (constants.kind) {
    case Kind::kLars:
      rules.named.kind = Kind::kMomentum;
      break;
    case Kind::kAdamW:
      rules.other.weight_decay = 0;
      [[fallthrough]];
    case Kind::kAdam:
    case Kind::kLamb:
      rules.all_rows = true;
      break;
    default:
      break;
  }
  return rules;
}

void prepare(const UpdateConstants& c, const SparseTable& table, RowGradients& gradients) {
  for (size_t i = 0; i < gradients.rows().size(); ++i) {
    float* gradient = gradients.at(i);
    if (c.clip_by_value != 0) clipByValue(gradient, c.clip_by_value, table.row_elements);
    if (c.l2 != 0)
      addScaled(gradient, table.parameters + gradients.rows()[i] * table.row_elements, c.l2,
                table.row_elements);
  }
}

}  // namespace

void updateRows(const UpdateConstants& constants, const SparseTable& table,
                std::span<const int64_t> rows, std::span<const float> values) {
  DTF_CHECK(table.row_elements > 0 && (table.rows == 0 || table.parameters != nullptr));
  DTF_CHECK(constants.average_slot == kSlotsMax ||
            table.slots.at(constants.average_slot) != nullptr);
  RowGradients gradients(table, rows, values);
  prepare(constants, table, gradients);
  std::vector<float> result(table.row_elements);
  RowRules rules = rulesOf(constants);
  if (constants.kind == Kind::kLamb)
    rules.named.trust_ratio = rules.other.trust_ratio =
        trustRatioOf(constants, table, gradients, result);
  if (rules.all_rows) {
    for (uint64_t row = 0; row < table.rows; ++row)
      updateRow(gradients.names(row) ? rules.named : rules.other, table, row, gradients.of(row),
                result);
  } else {
    for (size_t i = 0; i < gradients.rows().size(); ++i)
      updateRow(rules.named, table, gradients.rows()[i], gradients.at(i), result);
  }
  if (constants.average_slot != kSlotsMax)
    moveAverage(table.slots[constants.average_slot], table.parameters,
                constants.one_minus_average_decay, table.rows * table.row_elements);
}

}  // namespace dtf::ps
