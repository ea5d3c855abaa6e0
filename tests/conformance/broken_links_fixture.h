#pragma once

// A job over a network that breaks: real psd servers and clients, with a proxy between them.

#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/conformance/rpc_harness.h"
#include "tests/support/flaky_proxy.h"

namespace dtf::exchange {

using Way = testing::FlakyProxy::Way;
using Parameters = std::vector<std::vector<float>>;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr uint32_t kElements = 1600;  // of each ps's shard
inline constexpr uint32_t kStreamedElements =
    32768;  // from here on gradients are sent while they are written; for bfloat16 twice as many

inline arena::ModelDeclaration modelOf(uint32_t ps_tasks, uint32_t workers, bool sync,
                                       uint64_t steps, uint32_t elements = kElements) {
  std::vector<arena::VariableParts> variables;
  for (uint32_t ps = 0; ps < ps_tasks; ++ps)
    variables.push_back({"v" + std::to_string(ps), Shape{elements}, {{ps, 0, elements}}});
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout(variables, ps_tasks);
  model.optimizer.kind = cluster::OptimizerSpec::Kind::kGradientDescent;
  model.optimizer.learning_rate = 1;
  if (sync) model.replication = {cluster::ReplicationSpec::Mode::kSync, workers, workers};
  model.steps = steps;
  return model;
}

inline cluster::Timeouts healingTimeouts() {
  cluster::Timeouts timeouts = shortTimeouts();
  timeouts.lease_seconds = 10;
  timeouts.rejoin_seconds = 20;
  return timeouts;
}

// Gradients for which the order of summation changes the bits of the sum.
inline void writeGradients(ExchangeClient& client, const arena::ModelDeclaration& model,
                           uint32_t rank, uint64_t step) {
  const bool sync = model.replication.mode == cluster::ReplicationSpec::Mode::kSync;
  for (uint32_t ps = 0; ps < model.layout.shards.size(); ++ps)
    for (uint32_t i = 0; i < model.layout.shards[ps].elements; ++i)
      client.gradients(ps)[i] =
          sync ? std::sin(static_cast<float>(i * (rank + 1) + ps + step)) : -1.0F;
}

// The same gradients on every ps: the parameters differ if two ps take the gradients of different
// workers for a step.
inline void writeSameGradients(ExchangeClient& client, const arena::ModelDeclaration& model,
                               uint32_t rank, uint64_t step) {
  for (uint32_t ps = 0; ps < model.layout.shards.size(); ++ps)
    for (uint32_t i = 0; i < kElements; ++i)
      client.gradients(ps)[i] = static_cast<float>((rank + 1) * (step % 7 + 1));
}

class BrokenLinks : public ::testing::Test {
 protected:
  using BeforeStep = std::function<void(uint64_t step)>;

  // Runs a job of `workers` from its first call to its last. Returns the parameters that the chief
  // has at the end.
  Parameters train(
      const arena::ModelDeclaration& model, uint32_t workers, bool flaky,
      const BeforeStep& before_step = [](uint64_t) {}) {
    const auto ps_tasks = static_cast<uint32_t>(model.layout.shards.size());
    RpcHarness cluster(ps_tasks, workers, healingTimeouts());
    if (shares_) cluster.share_from_bytes = 0;
    cluster.exchanges_in_memory = exchanges_in_memory_;
    cluster.stream_from_bytes = kStreamedElements * sizeof(float);
    proxies_.clear();
    for (uint32_t ps = 0; ps < ps_tasks; ++ps)
      proxies_.push_back(std::make_unique<testing::FlakyProxy>(cluster.psAddress(ps).port));
    if (prepare_) prepare_();
    if (flaky)
      cluster.via = [&](uint32_t, std::vector<cluster::Address>& ps) {
        for (uint32_t i = 0; i < ps.size(); ++i) ps[i].port = proxies_[i]->port();
      };
    return trainOn(cluster, model, workers, before_step);
  }

  // The same with healthy links between workers and ps, and proxies between the ps: ps_proxies_, by
  // caller and by called ps.
  Parameters trainOverBrokenPsLinks(
      const arena::ModelDeclaration& model, uint32_t workers, cluster::Durability durability,
      const BeforeStep& before_step = [](uint64_t) {}) {
    ps_proxies_.clear();
    const auto between = [this](uint32_t caller, std::vector<cluster::TaskSpec>& ps) {
      for (uint32_t called = 0; called < ps.size(); ++called) {
        if (called == caller) continue;
        auto& proxy = ps_proxies_[{caller, called}];
        proxy = std::make_unique<testing::FlakyProxy>(ps[called].address.port);
        ps[called].address.port = proxy->port();
      }
    };
    const auto ps_tasks = static_cast<uint32_t>(model.layout.shards.size());
    RpcHarness cluster(ps_tasks, workers, healingTimeouts(), durability, between);
    if (prepare_) prepare_();
    return trainOn(cluster, model, workers, before_step);
  }

  Parameters trainOn(RpcHarness& cluster, const arena::ModelDeclaration& model, uint32_t workers,
                     const BeforeStep& before_step) {
    const auto ps_tasks = static_cast<uint32_t>(model.layout.shards.size());
    Parameters parameters(ps_tasks);
    std::vector<std::future<void>> running;
    for (uint32_t rank = 0; rank < workers; ++rank)
      running.push_back(std::async(std::launch::async, [&, rank] {
        before_call_();
        const auto client = cluster.connectRpc(rank);
        work(*client, model, rank, before_step);
        if (rank == 0) {
          before_call_();
          client->pull();
          expectSharing(*client);
          for (uint32_t ps = 0; ps < ps_tasks; ++ps)
            parameters[ps].assign(
                client->view(Values::kParameters, ps),
                client->view(Values::kParameters, ps) + model.layout.shards[ps].elements);
          if (at_end_) at_end_(cluster);
        }
        before_call_();
        client->job().leave();
      }));
    for (auto& worker : running) worker.get();
    return parameters;
  }

  // Expects that the parameters are read in shared memory if and only if the test asks for it. A
  // connection cut a moment ago shares nothing until the next one stands, so the cuts end first.
  template <typename Client>
  void expectSharing(Client& client) {
    for (auto& proxy : proxies_) proxy->stopCutting();
    const auto end = std::chrono::steady_clock::now() + seconds(60);
    while (client.TEST_sharesMemory() != shares_ && std::chrono::steady_clock::now() < end)
      client.pull();
    EXPECT_EQ(client.TEST_sharesMemory(), shares_);
  }

  void work(ExchangeClient& client, const arena::ModelDeclaration& model, uint32_t rank,
            const BeforeStep& before_step) const {
    before_call_();
    client.declare(model);
    const std::vector<float> zeros(model.layout.shards[0].elements);
    before_call_();
    if (rank == 0)
      client.job().initialise(
          std::vector<std::span<const float>>(model.layout.shards.size(), zeros),
          replication::kFirstEpoch);
    before_call_();
    client.job().waitInitialised();
    before_call_();
    client.job().barrier("start");
    before_call_();
    replication::StepState state = client.pull();
    while (!state.done) {
      if (rank == 0) before_step(state.next_step);
      write_(client, model, rank, state.next_step);
      before_call_();
      state = client.traits().streams ? stream(client, model, state)
                                      : pushPull(client, state.next_step, state.next_batch, 0);
    }
    before_call_();
    client.job().barrier("trained");
  }

  // Streams the gradients in the arenas of `client` again, bit by bit, behind the start of the
  // push.
  replication::StepState stream(ExchangeClient& client, const arena::ModelDeclaration& model,
                                const replication::StepState& due) const {
    const std::vector<arena::ShardLayout>& shards = model.layout.shards;
    Parameters gradients;
    for (uint32_t ps = 0; ps < shards.size(); ++ps) {
      gradients.emplace_back(client.gradients(ps), client.gradients(ps) + shards[ps].elements);
      std::fill_n(client.gradients(ps), shards[ps].elements, std::nanf(""));
    }
    client.begin(due.next_step, due.next_batch, 0, Gradient::kGrowing);
    constexpr size_t kPieces = 4;
    for (size_t piece = 1; piece <= kPieces; ++piece) {
      std::vector<uint64_t> written;
      for (uint32_t ps = 0; ps < shards.size(); ++ps) {
        written.push_back(shards[ps].elements * piece / kPieces);
        std::copy_n(gradients[ps].begin(), written[ps], client.gradients(ps));
      }
      client.written(written);
      after_piece_(due.next_step, piece);
    }
    return client.finish();
  }

  // For a job with links that are cut at intervals of time: a fast machine finishes after only a
  // few cuts. Every sixteenth of the chief's `steps` makes a cut if one is missing.
  BeforeStep cutsAtLeast(uint64_t steps) {
    return [this, every = steps / 16](uint64_t step) {
      if (step % every == 1 && cuts() < step / every)
        proxies_[0]->cutAfter(testing::FlakyProxy::Way::kToServer, 1);
    };
  }

  size_t cuts() const {
    size_t sum = 0;
    for (const auto& proxy : proxies_) sum += proxy->cuts();
    for (const auto& [ends, proxy] : ps_proxies_) sum += proxy->cuts();
    return sum;
  }

  void forEachPsProxy(const std::function<void(testing::FlakyProxy&)>& change) {
    for (auto& [ends, proxy] : ps_proxies_) change(*proxy);
  }

  bool exchanges_in_memory_ = true;  // where memory is shared
  bool shares_ = false;  // workers and ps read each other's memory, mapped anew on every connection
  std::function<void()> prepare_;
  std::function<void()> before_call_ = [] {};  // before any worker's call
  std::function<void(uint64_t step, size_t piece)> after_piece_ = [](uint64_t, size_t) {};
  std::function<void(RpcHarness&)> at_end_;  // while all ps still run
  std::function<decltype(writeGradients)> write_ = writeGradients;
  std::vector<std::unique_ptr<testing::FlakyProxy>> proxies_;
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<testing::FlakyProxy>> ps_proxies_;
};

}  // namespace dtf::exchange
