#include "tests/sim/expected_cells.h"

#include <cstring>

#include "common/ps/bfloat16.h"
#include "common/ps/parameter_store.h"

namespace dtf::sim {

float shownOf(const Plan& plan, float value) {
  if (!plan.narrows) return value;
  uint16_t narrow = 0;
  ps::toBFloat16(&value, 1, &narrow);
  ps::fromBFloat16(&narrow, 1, &value);
  return value;
}

// Update u brings a gradient to element u alone.
ExpectedCells::ExpectedCells(const Plan& plan, uint64_t updates_max)
    : saved_(updates_max + 1), shown_(updates_max + 1) {
  const uint64_t elements = (updates_max + 15) / 16 * 16;
  const uint32_t gradients = plan.sync() ? plan.aggregate : 1;
  std::vector<ps::SparseSlice> sparse;
  if (plan.sparse) sparse.push_back({0, static_cast<uint32_t>(elements), 1});
  ps::ParameterStore store(plan.optimizer, elements, {}, {}, sparse);
  store.initialise(std::vector<float>(elements));
  slots_.resize(store.slotCount(), Table(updates_max + 1));
  std::vector<float> none(plan.sparse ? 0 : elements);
  const std::vector<uint32_t> no_rows(sparse.size());
  for (uint64_t n = 1; n <= updates_max; ++n) {
    std::vector<float> one(plan.sparse ? 2 : elements);
    const auto row = static_cast<uint32_t>(n - 1);
    if (plan.sparse) std::memcpy(one.data(), &row, sizeof(row));
    one[plan.sparse ? 1 : row] = -static_cast<float>(plan.sparse ? 1 : gradients);
    std::vector<ps::Gradient> update(gradients, ps::Gradient{none, nullptr, no_rows});
    update[0] = {one, nullptr, std::vector<uint32_t>(sparse.size(), 1)};
    store.apply(std::move(update));
    saved_[n].assign(store.current()->data(), store.current()->data() + n);
    for (const float value : saved_[n]) shown_[n].push_back(shownOf(plan, value));
    for (size_t i = 0; i < slots_.size(); ++i)
      slots_[i][n].assign(store.slot(i).begin(), store.slot(i).begin() + n);
  }
}

}  // namespace dtf::sim
