#pragma once

// A worker's client in this process that brings only the rows that are asked for: of all others its
// parameters are NaN.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/ps/row_set.h"
#include "tests/unit/train/wrapped_client.h"

namespace dtf::train {

// Owns: the client that it passes everything on to, and its arenas. Borrows: the cluster.
class RowClient : public WrappedClient {
 public:
  explicit RowClient(ps::LocalCluster& cluster) : WrappedClient(cluster) {}

  void declare(const ps::ModelDeclaration& model) override {
    for (uint32_t ps = 0; ps < model.layout.shards.size(); ++ps) {
      layouts_.emplace_back(model.layout, ps);
      arenas_.emplace_back(model.layout.shards[ps].elements);
    }
    wanted_.resize(arenas_.size());
    WrappedClient::declare(model);
  }
  bool bringsRows() const override { return true; }
  bool bringsWhole() const override { return false; }
  void wantRows(uint32_t ps_task, const ps::RowSet& rows) override {
    EXPECT_EQ(rows.isWhole(), layouts_[ps_task].sparse().empty());
    if (!rows.isWhole()) EXPECT_EQ(ps::faultOf(rows, layouts_[ps_task]), std::nullopt);
    wanted_[ps_task] = rows;
    is_wanted_ = true;
  }
  ps::StepState pull() override {
    ++pulls;
    return brought(WrappedClient::pull());
  }
  ps::StepState exchange(uint64_t step, uint32_t batch, float loss) override {
    return brought(WrappedClient::exchange(step, batch, loss));
  }
  const float* parameters(uint32_t ps_task) const override { return arenas_[ps_task].data(); }
  void pullWhole() override { ++wholes; }
  const float* whole(uint32_t ps_task) const override { return WrappedClient::parameters(ps_task); }
  uint64_t pulls = 0, wholes = 0;

 private:
  ps::StepState brought(const ps::StepState& state) {
    const bool is_wanted = std::exchange(is_wanted_, false);
    for (uint32_t ps = 0; ps < arenas_.size(); ++ps) {
      std::vector<float>& arena = arenas_[ps];
      const float* const from = WrappedClient::parameters(ps);
      std::copy_n(from, arena.size(), arena.begin());
      if (!is_wanted || wanted_[ps].isWhole()) continue;
      const ps::GradientLayout alone = layouts_[ps].rowsAlone();
      std::vector<float> rows(alone.elementsOf(wanted_[ps].counts));
      ps::gatherRows(layouts_[ps], wanted_[ps], from, rows.data());
      std::fill(arena.begin() + static_cast<std::ptrdiff_t>(layouts_[ps].denseElements()),
                arena.end(), std::nanf(""));
      ps::scatterRows(layouts_[ps], {rows, nullptr, wanted_[ps].counts}, arena.data());
    }
    return state;
  }

  std::vector<ps::GradientLayout> layouts_;
  std::vector<std::vector<float>> arenas_;
  std::vector<ps::RowSet> wanted_;
  bool is_wanted_ = false;
};

}  // namespace dtf::train
