#pragma once

// A worker's client in this process that brings only the wanted rows: all other parameters are NaN.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/arena/row_set.h"
#include "tests/unit/train/wrapped_client.h"

namespace dtf::train {

// Owns: its arenas and the client that it passes calls on to. Borrows: the cluster.
class RowClient : public WrappedClient {
 public:
  explicit RowClient(exchange::LocalCluster& cluster) : WrappedClient(cluster) {}

  void declare(const arena::ModelDeclaration& model,
               std::shared_ptr<optimizer::DeviceArrays> device = nullptr) override {
    for (uint32_t ps = 0; ps < model.layout.shards.size(); ++ps) {
      layouts_.emplace_back(model.layout, ps);
      arenas_.emplace_back(model.layout.shards[ps].elements);
    }
    wanted_.resize(arenas_.size());
    WrappedClient::declare(model, std::move(device));
  }
  exchange::Traits traits() const override { return {.brings_rows = true, .has_whole = false}; }
  void setRows(exchange::RowsOf what, uint32_t ps_task, const arena::RowSet& rows) override {
    if (what == exchange::RowsOf::kGradient) return WrappedClient::setRows(what, ps_task, rows);
    EXPECT_EQ(rows.isWhole(), layouts_[ps_task].sparse().empty());
    if (!rows.isWhole()) EXPECT_EQ(arena::faultOf(rows, layouts_[ps_task]), std::nullopt);
    wanted_[ps_task] = rows;
    is_wanted_ = true;
  }
  replication::StepState pull(exchange::Values what = exchange::Values::kParameters) override {
    if (what == exchange::Values::kWhole) ++wholes;
    if (what != exchange::Values::kParameters) return WrappedClient::pull(what);
    ++pulls;
    return brought(WrappedClient::pull());
  }
  replication::StepState finish(const Error* failure = nullptr) override {
    return brought(WrappedClient::finish(failure));
  }
  const float* view(exchange::Values what, uint32_t ps_task) const override {
    return what == exchange::Values::kParameters ? arenas_[ps_task].data()
                                                 : WrappedClient::view(what, ps_task);
  }
  uint64_t pulls = 0, wholes = 0;

 private:
  replication::StepState brought(const replication::StepState& state) {
    const bool is_wanted = std::exchange(is_wanted_, false);
    for (uint32_t ps = 0; ps < arenas_.size(); ++ps) {
      std::vector<float>& arena = arenas_[ps];
      const float* const from = WrappedClient::view(exchange::Values::kParameters, ps);
      std::copy_n(from, arena.size(), arena.begin());
      if (!is_wanted || wanted_[ps].isWhole()) continue;
      const arena::GradientLayout alone = layouts_[ps].rowsAlone();
      std::vector<float> rows(alone.elementsOf(wanted_[ps].counts));
      arena::gatherRows(layouts_[ps], wanted_[ps], from, rows.data());
      std::fill(arena.begin() + static_cast<std::ptrdiff_t>(layouts_[ps].denseElements()),
                arena.end(), std::nanf(""));
      arena::scatterRows(layouts_[ps], {rows, nullptr, wanted_[ps].counts}, arena.data());
    }
    return state;
  }

  std::vector<arena::GradientLayout> layouts_;
  std::vector<std::vector<float>> arenas_;
  std::vector<arena::RowSet> wanted_;
  bool is_wanted_ = false;
};

}  // namespace dtf::train
