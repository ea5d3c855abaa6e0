#pragma once

// One variable and its optimizer, updated as on a ps.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/optimizer/parameter_store.h"

namespace dtf::optimizer {

inline constexpr int kSteps = 20;
inline constexpr double kTolerance = 5e-6;  // after the number of steps in these tests

inline arena::Gradient share(std::vector<float> values) {
  auto owner = std::make_shared<const std::vector<float>>(std::move(values));
  return {*owner, owner};
}

// A store whose only variable fills it, up to the padding.
struct Trainer {
  Trainer(const cluster::OptimizerSpec& spec, const std::vector<float>& values)
      : count(values.size()),
        padded((count + 15) / 16 * 16),
        store(spec, padded, {{0, 0, count, 0}}) {
    store.initialise(pad(values));
  }
  std::vector<float> pad(std::vector<float> values) const {
    values.resize(padded);
    return values;
  }
  // Runs the update in the pieces between `cuts`; whole, if there are none.
  void step(const std::vector<std::vector<float>>& gradients, std::vector<uint64_t> cuts = {}) {
    std::vector<arena::Gradient> shared;
    for (const auto& gradient : gradients) shared.push_back(share(pad(gradient)));
    const std::shared_ptr<UpdateJob> job = store.prepareApply(std::move(shared));
    if (cuts.empty()) cuts = {0, padded};
    if (job->needsMeasuring()) {
      for (size_t i = cuts.size() - 1; i > 0; --i) job->measure(cuts[i - 1], cuts[i]);
    }
    for (size_t i = 0; i + 1 < cuts.size(); ++i) job->run(cuts[i], cuts[i + 1]);
    store.commit(job);
  }
  const float* w() const { return store.current()->data(); }
  size_t count;
  uint64_t padded;
  ParameterStore store;
};

}  // namespace dtf::optimizer
