#include "tests/sim/shared_rows.h"

#include "common/optimizer/parameter_store.h"
#include "tests/sim/expected_cells.h"

namespace dtf::sim {

bool SharedRows::isNamed(const Source& source, uint32_t index) const {
  if (shares_.examples(source) == 0) return false;
  if (index == 0) return true;
  return plan_.sync() && (source.rank + source.batch + source.step) % 2 == 0;
}

// Small whole numbers, and the weights of such plans are exact: so is their sum, in any order.
float SharedRows::gradientOf(const Source& source) const {
  return plan_.sync() ? -static_cast<float>(1 + source.rank + source.batch) : -1;
}

float SharedRows::meanOf(const std::vector<Source>& update, uint32_t index) const {
  float sum = 0;
  int named = 0;
  for (const Source& source : update) {
    if (!isNamed(source, index)) continue;
    sum += shownOf(plan_, gradientOf(source) * shares_.weights(source).rows);
    ++named;
  }
  return named == 0 ? 0 : sum / static_cast<float>(named);
}

const SharedRows::State& SharedRows::after(const std::vector<std::vector<Source>>& updates,
                                           uint32_t index) {
  std::vector<float> means;
  for (const std::vector<Source>& update : updates) means.push_back(meanOf(update, index));
  const auto found = known_.find(means);
  return found != known_.end() ? found->second : known_.emplace(means, replay(means)).first->second;
}

// A table of one column, of which row 0 is the one.
SharedRows::State SharedRows::replay(const std::vector<float>& means) const {
  constexpr uint32_t kRows = 16;
  optimizer::ParameterStore store(plan_.optimizer, kRows, {}, {}, {{0, kRows, 1}});
  store.initialise(std::vector<float>(kRows));
  for (const float mean : means) {
    const float row[] = {0, mean};  // the id 0 has the bits of 0.0
    if (mean == 0)
      store.apply({{{}, nullptr, {0}}});
    else
      store.apply({{row, nullptr, {1}}});
  }
  State state{store.current()->data()[0], {}};
  for (uint32_t i = 0; i < store.slotCount(); ++i) state.slots.push_back(store.slot(i)[0]);
  return state;
}

}  // namespace dtf::sim
