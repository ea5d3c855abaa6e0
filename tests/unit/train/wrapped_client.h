#pragma once

// A worker's client in this process, for tests that change some of its calls.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "common/exchange/local_exchange_client.h"

namespace dtf::train {

// Owns: the client that it passes calls on to. Borrows: the cluster.
class WrappedClient : public exchange::ExchangeClient {
 public:
  explicit WrappedClient(exchange::LocalCluster& cluster) : client_(cluster, 0) {}
  exchange::JobClient& job() override { return client_; }
  exchange::Traits traits() const override { return client_.traits(); }
  void declare(const arena::ModelDeclaration& model,
               std::shared_ptr<optimizer::DeviceArrays> device = nullptr) override {
    client_.declare(model, std::move(device));
  }
  replication::StepState pull(exchange::Values what = exchange::Values::kParameters) override {
    return client_.pull(what);
  }
  const float* view(exchange::Values what, uint32_t ps_task) const override {
    return client_.view(what, ps_task);
  }
  float* gradients(uint32_t ps_task) override { return client_.gradients(ps_task); }
  void setRows(exchange::RowsOf what, uint32_t ps_task, const arena::RowSet& rows) override {
    client_.setRows(what, ps_task, rows);
  }
  void begin(uint64_t step, uint32_t batch, float loss, exchange::Gradient gradient) override {
    client_.begin(step, batch, loss, gradient);
  }
  void written(std::span<const uint64_t> elements) override { client_.written(elements); }
  replication::StepState finish(const Error* failure = nullptr) override {
    return client_.finish(failure);
  }

 protected:
  exchange::LocalExchangeClient& client() { return client_; }

 private:
  exchange::LocalExchangeClient client_;
};

}  // namespace dtf::train
