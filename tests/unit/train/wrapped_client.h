#pragma once

// A worker's client in this process, for tests that change some of what it says.

#include <cstdint>
#include <span>
#include <string_view>

#include "common/ps/local_parameter_client.h"

namespace dtf::train {

// Owns: the client that it passes everything on to. Borrows: the cluster.
class WrappedClient : public ps::ParameterClient {
 public:
  explicit WrappedClient(ps::LocalCluster& cluster) : client_(cluster, 0) {}
  void declare(const ps::ModelDeclaration& model) override { client_.declare(model); }
  void initialise(std::span<const std::span<const float>> shards, uint64_t epoch) override {
    client_.initialise(shards, epoch);
  }
  void waitInitialised() override { client_.waitInitialised(); }
  ps::StepState pull() override { return client_.pull(); }
  const float* parameters(uint32_t ps_task) const override { return client_.parameters(ps_task); }
  void pullAverages() override { client_.pullAverages(); }
  const float* averages(uint32_t ps_task) const override { return client_.averages(ps_task); }
  float* gradients(uint32_t ps_task) override { return client_.gradients(ps_task); }
  void setRows(uint32_t ps_task, std::span<const uint32_t> row_counts) override {
    client_.setRows(ps_task, row_counts);
  }
  ps::StepState exchange(uint64_t step, uint32_t batch, float loss) override {
    return client_.exchange(step, batch, loss);
  }
  void barrier(std::string_view name) override { client_.barrier(name); }
  void finish() override { client_.finish(); }

 protected:
  ps::LocalParameterClient& client() { return client_; }

 private:
  ps::LocalParameterClient client_;
};

}  // namespace dtf::train
