#pragma once

// Requirements on every ExchangeClient, over any transport: tests/unit/exchange runs them over
// LocalExchangeClient, other tests over RPC. An implementation brings a factory of clusters and
// instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Local, ExchangeClientSuite, ::testing::Values(&makeLocalHarness));
//
// Tests with workers that wait for each other run one thread per worker.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/arena/gradient_layout.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "common/exchange/exchange_client.h"
#include "common/replication/coordinator.h"
#include "common/replication/epoch.h"

namespace dtf::exchange {

// A running cluster of parameter servers, to which workers connect.
class ClusterHarness {
 public:
  virtual ~ClusterHarness() = default;
  // Returns the client of a new process of worker `rank`, not yet declared. May be called from any
  // thread; the harness outlives it.
  virtual std::unique_ptr<ExchangeClient> connect(uint32_t rank) = 0;
  // The process of `rank` stops its heartbeats; returns when its lease has run out on every ps.
  virtual void loseWorker(uint32_t rank) = 0;
  // The staleness counts of ps/0.
  virtual replication::StalenessHistogram staleness() = 0;
  // `model` as the workers of this harness declare it.
  virtual arena::ModelDeclaration declared(arena::ModelDeclaration model) const { return model; }
  // Relative rounding error of a gradient or a parameter on its way.
  virtual double relativeError() const { return 0; }
};

using HarnessFactory = std::unique_ptr<ClusterHarness> (*)(uint32_t ps_tasks, uint32_t workers);

class ExchangeClientSuite : public ::testing::TestWithParam<HarnessFactory> {
 protected:
  using Clients = std::vector<std::unique_ptr<ExchangeClient>>;

  // Starts a cluster, declares the model from every worker, initialises from the chief.
  Clients start(uint32_t ps_tasks, uint32_t workers, const arena::ModelDeclaration& model,
                const std::vector<std::vector<float>>& values) {
    harness_ = GetParam()(ps_tasks, workers);
    model_ = harness_->declared(model);
    values_ = values;
    Clients clients;
    for (uint32_t rank = 0; rank < workers; ++rank) clients.push_back(connect(rank));
    return clients;
  }

  std::unique_ptr<ExchangeClient> connect(uint32_t rank) {
    std::unique_ptr<ExchangeClient> client = harness_->connect(rank);
    client->declare(model_);
    if (rank == 0) {
      const std::vector<std::span<const float>> spans(values_.begin(), values_.end());
      client->job().initialise(spans, replication::kFirstEpoch);
    }
    client->job().waitInitialised();
    return client;
  }

  // v0 = 0 on ps/0; v1 = 1 and the sparse v_rows = [[3], [4]] on ps/1: TensorFlow's
  // sync_replicas_optimizer_test.
  static arena::ModelDeclaration tensorflowModel(uint32_t aggregate, uint32_t workers,
                                                 uint64_t steps) {
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout({{"v0", Shape{}, {{0, 0, 1}}},
                                      {"v1", Shape{}, {{1, 0, 1}}},
                                      {"v_rows", Shape{2, 1}, {{1, 0, 2}}, std::nullopt, true}},
                                     2);
    model.optimizer.kind = cluster::OptimizerSpec::Kind::kGradientDescent;
    model.optimizer.learning_rate = 2.0;
    model.replication = {cluster::ReplicationSpec::Mode::kSync, aggregate, workers};
    model.steps = steps;
    return model;
  }
  static std::vector<std::vector<float>> tensorflowValues() {
    std::vector<std::vector<float>> values = {std::vector<float>(16), std::vector<float>(32)};
    values[1][0] = 1;
    values[1][16] = 3;
    values[1][17] = 4;
    return values;
  }
  static void tensorflowGradients(ExchangeClient& client, uint32_t rank) {
    const float k = static_cast<float>(rank);
    client.gradients(0)[0] = 0.1f + 0.2f * k;
    client.gradients(1)[0] = 0.9f + 0.2f * k;
    pushRow(client, 1, {0.1f + 0.2f * k});
  }
  // The next gradient for ps/1 has one row of its sparse slice, behind 16 dense elements.
  static void pushRow(ExchangeClient& client, uint32_t row, const std::vector<float>& values) {
    client.setRows(RowsOf::kGradient, 1, {{1}, {row}});
    std::copy(values.begin(), values.end(), client.gradients(1) + 17);
  }
  // Allows for the rounding of transfers.
  void expectNear(float value, float due) const {
    EXPECT_NEAR(value, due, 1e-6 + harness_->relativeError() * std::fabs(due));
  }
  void expectTensorflowValues(const ExchangeClient& client, float v0, float v1) const {
    expectNear(client.view(Values::kParameters, 0)[0], v0);
    expectNear(client.view(Values::kParameters, 1)[0], v1);
    EXPECT_EQ(client.view(Values::kParameters, 1)[16], 3)
        << "row 0 has a gradient of 0 and must stay";
  }

  static arena::ModelDeclaration vectorModel(uint32_t ps_tasks, int64_t elements_per_ps,
                                             double rate) {
    std::vector<arena::VariableParts> variables;
    for (uint32_t ps = 0; ps < ps_tasks; ++ps) {
      variables.push_back({"v" + std::to_string(ps),
                           Shape{elements_per_ps},
                           {{ps, 0, static_cast<uint64_t>(elements_per_ps)}}});
    }
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout(variables, ps_tasks);
    model.optimizer.learning_rate = rate;
    return model;
  }
  static std::vector<std::vector<float>> zeros(const arena::ModelDeclaration& model) {
    std::vector<std::vector<float>> values;
    for (const arena::ShardLayout& shard : model.layout.shards) values.emplace_back(shard.elements);
    return values;
  }

  template <class Body>
  static void inThreads(Clients& clients, const Body& body) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < clients.size(); ++rank) {
      threads.emplace_back([&, rank] { body(*clients[rank], rank); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  static std::string errorOf(const std::function<void()>& call, ErrorCode code) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(errorCodeName(error.code()), errorCodeName(code)) << error.message();
      return error.message();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  std::unique_ptr<ClusterHarness> harness_;
  arena::ModelDeclaration model_;
  std::vector<std::vector<float>> values_;
};

TEST_P(ExchangeClientSuite, SyncTwoWorkersGiveTensorflowsValues) {
  Clients clients = start(2, 2, tensorflowModel(2, 2, 2), tensorflowValues());
  inThreads(clients, [this](ExchangeClient& client, uint32_t rank) {
    replication::StepState state = client.pull();
    EXPECT_EQ(state.global_step, 0u);
    expectTensorflowValues(client, 0, 1);
    tensorflowGradients(client, rank);
    state = pushPull(client, state.next_step, state.next_batch, 0);
    EXPECT_EQ(state.outcome, replication::Outcome::kApplied);
    EXPECT_EQ(state.global_step, 1u);
    EXPECT_FALSE(state.done);
    expectTensorflowValues(client, -0.4f, -1.0f);
    expectNear(client.view(Values::kParameters, 1)[17], 3.6F);
    state = pushPull(client, state.next_step, state.next_batch, 0);
    EXPECT_EQ(state.global_step, 2u);
    EXPECT_TRUE(state.done);
    expectTensorflowValues(client, -0.8f, -3.0f);
    client.job().leave();
  });
}

TEST_P(ExchangeClientSuite, BackupWorkersLateGradientIsStaleAndHasNoEffect) {
  Clients clients = start(2, 3, tensorflowModel(2, 3, 10), tensorflowValues());
  std::vector<replication::StepState> states(3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    states[rank] = clients[rank]->pull();
    tensorflowGradients(*clients[rank], rank);
  }
  const auto exchange = [&](uint32_t rank) {
    states[rank] = pushPull(*clients[rank], states[rank].next_step, states[rank].next_batch, 0);
  };
  const auto bothExchange = [&](uint32_t a, uint32_t b) {
    std::thread other([&] { exchange(b); });
    exchange(a);
    other.join();
  };
  bothExchange(0, 2);
  EXPECT_EQ(states[0].outcome, replication::Outcome::kApplied);
  EXPECT_EQ(states[2].outcome, replication::Outcome::kApplied);
  expectTensorflowValues(*clients[0], -0.6f, -1.2f);

  exchange(1);
  EXPECT_EQ(states[1].outcome, replication::Outcome::kStale);
  EXPECT_EQ(states[1].global_step, 1u);
  expectTensorflowValues(*clients[1], -0.6f, -1.2f);

  bothExchange(0, 1);
  EXPECT_EQ(states[1].outcome, replication::Outcome::kApplied);
  EXPECT_EQ(states[1].global_step, 2u);
  expectTensorflowValues(*clients[0], -1.0f, -3.2f);
  expectTensorflowValues(*clients[1], -1.0f, -3.2f);
}

TEST_P(ExchangeClientSuite, EveryPsAppliesTheSameWorkerSet) {
  constexpr uint32_t kWorkers = 3;
  constexpr uint32_t kPs = 3;
  arena::ModelDeclaration model = vectorModel(kPs, 3, 1.0);
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 2, kWorkers};
  model.steps = 60;
  Clients clients = start(kPs, kWorkers, model, zeros(model));
  // Parameter r counts the steps to which worker r contributed.
  inThreads(clients, [](ExchangeClient& client, uint32_t rank) {
    replication::StepState state = client.pull();
    while (!state.done) {
      for (uint32_t ps = 0; ps < kPs; ++ps) client.gradients(ps)[rank] = -2;
      state = pushPull(client, state.next_step, state.next_batch, 0);
      for (uint32_t ps = 1; ps < kPs; ++ps)
        for (uint32_t worker = 0; worker < kWorkers; ++worker)
          EXPECT_EQ(client.view(Values::kParameters, ps)[worker],
                    client.view(Values::kParameters, 0)[worker])
              << "step " << state.next_step;
    }
  });
  clients[0]->pull();
  const float* const taken = clients[0]->view(Values::kParameters, 0);
  EXPECT_EQ(taken[0] + taken[1] + taken[2], 120) << "two in each of 60 steps";
}

TEST_P(ExchangeClientSuite, MoreReplicasThanWorkersMeansSeveralBatchesEach) {
  // 2 workers, 5 batches: worker 0 contributes 3, worker 1 contributes 2.
  arena::ModelDeclaration model = vectorModel(2, 1, 1.0);
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 5, 2};
  model.steps = 3;
  Clients clients = start(2, 2, model, zeros(model));
  inThreads(clients, [this](ExchangeClient& client, uint32_t rank) {
    replication::StepState state = client.pull();
    for (uint64_t step = 0; step < 3; ++step) {
      const uint32_t batches = rank == 0 ? 3 : 2;
      for (uint32_t batch = 0; batch < batches; ++batch) {
        EXPECT_EQ(state.next_step, step);
        EXPECT_EQ(state.next_batch, batch);
        // Overwrites the gradient after each call: a queued batch must have kept its own.
        const float gradient = -static_cast<float>(10 * rank + batch + 1);
        client.gradients(0)[0] = gradient;
        client.gradients(1)[0] = 2 * gradient;
        state = pushPull(client, step, batch, 0);
        EXPECT_EQ(state.outcome, batch + 1 < batches ? replication::Outcome::kQueued
                                                     : replication::Outcome::kApplied);
        if (state.outcome != replication::Outcome::kQueued) continue;
        // The step's other batches are computed from the same parameters.
        expectNear(client.view(Values::kParameters, 0)[0], 5.8f * static_cast<float>(step));
        expectNear(client.view(Values::kParameters, 1)[0], 11.6f * static_cast<float>(step));
      }
      // (1 + 2 + 3 + 11 + 12) / 5
      expectNear(client.view(Values::kParameters, 0)[0], 5.8f * static_cast<float>(step + 1));
      expectNear(client.view(Values::kParameters, 1)[0], 11.6f * static_cast<float>(step + 1));
    }
    EXPECT_TRUE(state.done);
    EXPECT_EQ(state.global_step, 3u);
  });
}

TEST_P(ExchangeClientSuite, MovingAveragesComeBesideTheParameters) {
  arena::ModelDeclaration model = vectorModel(2, 3, 1.0);
  model.optimizer.moving_average_decay = 0.5;
  model.steps = 10;
  Clients clients = start(2, 1, model, zeros(model));
  ExchangeClient& client = *clients[0];
  replication::StepState state = client.pull();
  for (const float average : {0.5f, 1.25f, 2.125f}) {  // of 1, 2, 3
    for (uint32_t ps = 0; ps < 2; ++ps) client.gradients(ps)[2] = -1;
    state = pushPull(client, state.next_step, state.next_batch, 0);
    client.pull(Values::kAverages);
    for (uint32_t ps = 0; ps < 2; ++ps) {
      EXPECT_EQ(client.view(Values::kAverages, ps)[2], average);
      EXPECT_EQ(client.view(Values::kParameters, ps)[2], static_cast<float>(state.global_step));
    }
  }
}

TEST_P(ExchangeClientSuite, AveragesThatNobodyKeepsAreRefused) {
  arena::ModelDeclaration model = vectorModel(1, 3, 1.0);
  model.steps = 1;
  Clients clients = start(1, 1, model, zeros(model));
  try {
    clients[0]->pull(Values::kAverages);
    FAIL() << "there are none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("moving_average"), std::string::npos) << error.message();
  }
}

TEST_P(ExchangeClientSuite, AsyncLostWorkersStepIsDoneByAnother) {
  arena::ModelDeclaration model = vectorModel(2, 1, 1.0);
  model.steps = 5;
  Clients clients = start(2, 2, model, zeros(model));
  clients[1]->pull();  // is granted a step that it never pushes
  std::atomic<uint64_t> pushes{0};
  std::thread worker([&] {
    ExchangeClient& client = *clients[0];
    client.gradients(0)[0] = client.gradients(1)[0] = -1;
    replication::StepState state = client.pull();
    while (!state.done) {
      state = pushPull(client, state.next_step, state.next_batch, 0);
      ++pushes;
    }
    EXPECT_EQ(state.global_step, 5u);
    EXPECT_EQ(client.view(Values::kParameters, 0)[0], 5);
    EXPECT_EQ(client.view(Values::kParameters, 1)[0], 5);
  });
  while (pushes < 3) std::this_thread::yield();
  harness_->loseWorker(1);
  worker.join();
  EXPECT_EQ(pushes, 5u);
}

TEST_P(ExchangeClientSuite, ALostWorkerIsNamedToThoseWhoWaitForIt) {
  Clients clients = start(2, 2, tensorflowModel(2, 2, 10), tensorflowValues());
  const replication::StepState state = clients[0]->pull();
  clients[1]->pull();
  harness_->loseWorker(1);
  const std::string message =
      errorOf([&] { pushPull(*clients[0], state.next_step, state.next_batch, 0); },
              ErrorCode::kUnavailable);
  EXPECT_NE(message.find("worker/1 was lost"), std::string::npos) << message;
  EXPECT_NE(message.find("step 0"), std::string::npos) << message;
}

TEST_P(ExchangeClientSuite, AReplacedProcessIsFencedAndTheNewOneGoesOn) {
  Clients clients = start(2, 1, tensorflowModel(1, 1, 10), tensorflowValues());
  tensorflowGradients(*clients[0], 0);
  replication::StepState state = clients[0]->pull();
  state = pushPull(*clients[0], state.next_step, state.next_batch, 0);
  EXPECT_EQ(state.global_step, 1u);

  const std::unique_ptr<ExchangeClient> newer = connect(0);
  const std::string message =
      errorOf([&] { pushPull(*clients[0], state.next_step, state.next_batch, 0); },
              ErrorCode::kUnavailable);
  EXPECT_NE(message.find("fenced: worker/0 was replaced"), std::string::npos) << message;

  state = newer->pull();
  EXPECT_EQ(state.global_step, 1u) << "a restarted chief does not initialise again";
  expectTensorflowValues(*newer, -0.2f, -0.8f);
  tensorflowGradients(*newer, 0);
  EXPECT_EQ(pushPull(*newer, state.next_step, state.next_batch, 0).global_step, 2u);
}

TEST_P(ExchangeClientSuite, ADifferentModelIsRefusedWithTheDifference) {
  Clients clients = start(2, 2, tensorflowModel(2, 2, 10), tensorflowValues());
  arena::ModelDeclaration other = model_;
  other.optimizer.learning_rate = 0.5;
  other.steps = 11;
  const std::unique_ptr<ExchangeClient> client = harness_->connect(1);
  const std::string message = errorOf([&] { client->declare(other); }, ErrorCode::kBadConfig);
  EXPECT_NE(message.find("learning_rate is 0.5, the job's is 2"), std::string::npos) << message;
  EXPECT_NE(message.find("steps is 11, the job's is 10"), std::string::npos) << message;
}

TEST_P(ExchangeClientSuite, SyncRunsGiveTheSameBitsInEveryOrderOfArrival) {
  constexpr uint32_t kWorkers = 3;
  arena::ModelDeclaration model = vectorModel(2, 40, 0.05);
  model.optimizer.kind = cluster::OptimizerSpec::Kind::kAdam;
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 7, kWorkers};
  model.steps = 12;
  std::vector<float> first;
  for (int run = 0; run < 4; ++run) {
    Clients clients = start(2, kWorkers, model, zeros(model));
    inThreads(clients, [](ExchangeClient& client, uint32_t rank) {
      replication::StepState state = client.pull();
      while (!state.done) {
        Random random(state.next_step, 100 * rank + state.next_batch);
        for (uint32_t ps = 0; ps < 2; ++ps) {
          for (int i = 0; i < 40; ++i) client.gradients(ps)[i] = random.normal();
        }
        state = pushPull(client, state.next_step, state.next_batch, 0);
      }
    });
    clients[0]->pull();
    std::vector<float> bits(clients[0]->view(Values::kParameters, 0),
                            clients[0]->view(Values::kParameters, 0) + 40);
    bits.insert(bits.end(), clients[0]->view(Values::kParameters, 1),
                clients[0]->view(Values::kParameters, 1) + 40);
    if (run == 0) first = bits;
    EXPECT_EQ(std::memcmp(bits.data(), first.data(), bits.size() * sizeof(float)), 0);
  }
}

TEST_P(ExchangeClientSuite, NobodyLeavesABarrierBeforeAllHaveArrived) {
  arena::ModelDeclaration model = vectorModel(1, 1, 1.0);
  model.steps = 1;
  Clients clients = start(1, 4, model, zeros(model));
  std::atomic<int> arrived{0};
  inThreads(clients, [&](ExchangeClient& client, uint32_t) {
    for (int round = 1; round <= 5; ++round) {
      ++arrived;
      client.job().barrier("round " + std::to_string(round));
      EXPECT_GE(arrived, 4 * round);
    }
  });
}

}  // namespace dtf::exchange
