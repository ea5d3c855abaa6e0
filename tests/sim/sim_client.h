#pragma once

// The client of a simulated worker.

#include <kj/async.h>
#include <kj/common.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "common/exchange/gradient_rows.h"
#include "common/net/error_bridge.h"
#include "common/wire/ps/rpc_calls.h"
#include "tests/sim/ledger.h"

namespace dtf::sim {

// The blocking client, like RpcExchangeClient, but the fiber waits in place of a thread.
// Borrows: the calls and the fiber's scope.
class SimClient final : public exchange::ExchangeClient, public exchange::JobClient {
 public:
  SimClient(wire::ControlCalls& control, wire::DataCalls& data, kj::WaitScope& scope)
      : control_(control), data_(data), scope_(scope) {}
  ~SimClient() noexcept override =
      default;  // kj's promises may throw at their end: nobody could go on

  template <class T>
  T await(kj::Promise<T> promise) {
    try {
      return promise.wait(scope_);
    } catch (const kj::Exception& exception) {
      throw net::toError(exception);
    }
  }

  exchange::JobClient& job() override { return *this; }
  exchange::Traits traits() const override {
    return {.brings_rows = true, .streams = true, .overlaps = overlaps_};
  }
  void declare(const arena::ModelDeclaration& declaration,
               std::shared_ptr<optimizer::DeviceArrays> = nullptr) override {
    await(control_.opened());
    await(control_.declare(declaration));
    await(data_.open(declaration));
    overlaps_ = declaration.replication.overlap;
    for (uint32_t ps = 0; ps < declaration.layout.shards.size(); ++ps)
      gradients_.emplace_back(declaration.layout, ps);
  }
  replication::StepState pull(exchange::Values what = exchange::Values::kParameters) override {
    if (what == exchange::Values::kParameters) return await(data_.pull());
    await(data_.pullAside(what == exchange::Values::kWhole));
    return {};
  }
  const float* view(exchange::Values what, uint32_t ps_task) const override {
    return what == exchange::Values::kParameters ? data_.parameters(ps_task) : data_.aside(ps_task);
  }
  float* gradients(uint32_t ps_task) override { return data_.gradients(ps_task); }
  void setRows(exchange::RowsOf what, uint32_t ps_task, const arena::RowSet& rows) override {
    if (what == exchange::RowsOf::kParameters) return data_.wantRows(ps_task, rows);
    data_.setRows(ps_task, rows.counts);
    exchange::writeIds(gradients_.at(ps_task), rows, data_.gradients(ps_task));
  }
  GradientPlace placeOf(uint32_t ps_task) {
    return {[this, ps_task](auto row_counts) { data_.setRows(ps_task, row_counts); },
            [this, ps_task] { return data_.gradients(ps_task); }};
  }
  // Beside the computation only where a thread would do it.
  void begin(uint64_t step, uint32_t batch, float loss, exchange::Gradient gradient) override {
    if (overlaps_ == (gradient == exchange::Gradient::kWhole)) data_.begin(gradient);
    exchange_ = data_.exchange(step, batch, loss).eagerlyEvaluate(nullptr);
  }
  void written(std::span<const uint64_t> elements) override {
    data_.written(elements);
    data_.sendMore();
  }
  replication::StepState finish(const Error* failure = nullptr) override {
    KJ_DEFER(data_.end());
    if (failure == nullptr) return await(kj::mv(exchange_));
    data_.fail(*failure);
    return {};
  }
  void initialise(std::span<const std::span<const float>> shards, uint64_t epoch) override {
    await(data_.initialise(shards, epoch));
  }
  void waitInitialised() override { await(control_.waitInitialised()); }
  void barrier(std::string_view name) override { await(control_.barrier(name)); }
  void setEvaluating(bool evaluates) override { control_.setEvaluating(evaluates); }
  void leave() override { await(control_.finish()); }

 private:
  wire::ControlCalls& control_;
  wire::DataCalls& data_;
  kj::WaitScope& scope_;
  bool overlaps_ = false;
  std::vector<arena::GradientLayout> gradients_;            // by ps
  kj::Promise<replication::StepState> exchange_ = nullptr;  // begun, and not finished
};

}  // namespace dtf::sim
