#include "tests/sim/expected_cells.h"

#include <cstring>

#include "common/arena/bfloat16.h"
#include "common/optimizer/parameter_store.h"

namespace dtf::sim {

float shownOf(const Plan& plan, float value) {
  if (!plan.narrows) return value;
  uint16_t narrow = 0;
  arena::toBFloat16(&value, 1, &narrow);
  arena::fromBFloat16(&narrow, 1, &value);
  return value;
}

ExpectedCells::ExpectedCells(const Plan& plan, uint64_t updates_max)
    : plan_(plan), updates_max_(updates_max), slots_(optimizer::slotCount(plan.optimizer)) {}

const ExpectedCells::Tables& ExpectedCells::of(float mean, bool is_sparse) const {
  const std::pair key(mean, is_sparse);
  const auto found = known_.find(key);
  return found != known_.end() ? found->second
                               : known_.emplace(key, tablesOf(mean, is_sparse)).first->second;
}

// Update u brings a gradient to element u alone.
ExpectedCells::Tables ExpectedCells::tablesOf(float mean, bool is_sparse) const {
  const uint64_t elements = (updates_max_ + 15) / 16 * 16;
  std::vector<arena::SparseSlice> sparse;
  if (is_sparse) sparse.push_back({0, static_cast<uint32_t>(elements), 1});
  optimizer::ParameterStore store(plan_.optimizer, elements, {}, {}, sparse);
  store.initialise(std::vector<float>(elements));
  Tables tables{Table(updates_max_ + 1), Table(updates_max_ + 1),
                std::vector<Table>(slots_, Table(updates_max_ + 1))};
  for (uint64_t n = 1; n <= updates_max_; ++n) {
    std::vector<float> gradient(is_sparse ? 2 : elements);
    const auto row = static_cast<uint32_t>(n - 1);
    if (is_sparse) std::memcpy(gradient.data(), &row, sizeof(row));
    gradient[is_sparse ? 1 : row] = mean;
    store.apply({{gradient, nullptr, std::vector<uint32_t>(sparse.size(), 1)}});
    const float* const values = store.current()->data();
    tables.saved[n].assign(values, values + n);
    for (const float value : tables.saved[n]) tables.shown[n].push_back(shownOf(plan_, value));
    for (uint32_t i = 0; i < slots_; ++i)
      tables.slots[i][n].assign(store.slot(i).begin(), store.slot(i).begin() + n);
  }
  return tables;
}

}  // namespace dtf::sim
