#pragma once

// What every ParameterClient must do, whatever carries its words: run over LocalParameterClient in
// tests/unit/ps, and over RPC where that is tested. An implementation brings a factory of clusters
// and instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Local, ParameterClientSuite, ::testing::Values(&makeLocalHarness));
//
// Tests whose workers wait for each other run one thread per worker.

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

#include "common/base/error.h"
#include "common/base/random.h"
#include "common/ps/coordinator.h"
#include "common/ps/epoch.h"
#include "common/ps/gradient_layout.h"
#include "common/ps/parameter_client.h"

namespace dtf::ps {

// A running cluster of parameter servers, to which workers connect.
class ClusterHarness {
 public:
  virtual ~ClusterHarness() = default;
  // A new process of worker `rank`, not yet declared. May be called from any thread; the harness
  // outlives it.
  virtual std::unique_ptr<ParameterClient> connect(uint32_t rank) = 0;
  // Every ps finds the process of `rank` gone (no more heartbeats, its lease has run out).
  virtual void loseWorker(uint32_t rank) = 0;
  // What ps/0 has counted.
  virtual StalenessHistogram staleness() = 0;
  // `model` as the workers of this harness declare it.
  virtual ModelDeclaration declared(ModelDeclaration model) const { return model; }
  // Of each of two numbers, a gradient and a parameter, on their way.
  virtual double relativeError() const { return 0; }
};

using HarnessFactory = std::unique_ptr<ClusterHarness> (*)(uint32_t ps_tasks, uint32_t workers);

class ParameterClientSuite : public ::testing::TestWithParam<HarnessFactory> {
 protected:
  using Clients = std::vector<std::unique_ptr<ParameterClient>>;

  // Starts a cluster, declares from every worker, initialises from the chief.
  Clients start(uint32_t ps_tasks, uint32_t workers, const ModelDeclaration& model,
                const std::vector<std::vector<float>>& values) {
    harness_ = GetParam()(ps_tasks, workers);
    model_ = harness_->declared(model);
    values_ = values;
    Clients clients;
    for (uint32_t rank = 0; rank < workers; ++rank) clients.push_back(connect(rank));
    return clients;
  }

  std::unique_ptr<ParameterClient> connect(uint32_t rank) {
    std::unique_ptr<ParameterClient> client = harness_->connect(rank);
    client->declare(model_);
    if (rank == 0) {
      const std::vector<std::span<const float>> spans(values_.begin(), values_.end());
      client->initialise(spans, kFirstEpoch);
    }
    client->waitInitialised();
    return client;
  }

  // v0 = 0 on ps/0; v1 = 1 and the sparse v_rows = [[3], [4]] on ps/1: TensorFlow's
  // sync_replicas_optimizer_test.
  static ModelDeclaration tensorflowModel(uint32_t aggregate, uint32_t workers, uint64_t steps) {
    ModelDeclaration model;
    model.layout = makeLayout({{"v0", Shape{}, {{0, 0, 1}}},
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
  static void tensorflowGradients(ParameterClient& client, uint32_t rank) {
    const float k = static_cast<float>(rank);
    client.gradients(0)[0] = 0.1f + 0.2f * k;
    client.gradients(1)[0] = 0.9f + 0.2f * k;
    pushRow(client, 1, {0.1f + 0.2f * k});
  }
  // The next gradient for ps/1 has one row of its sparse slice, behind 16 dense elements.
  static void pushRow(ParameterClient& client, uint32_t row, const std::vector<float>& values) {
    client.setRows(1, std::vector<uint32_t>{1});
    std::memcpy(client.gradients(1) + 16, &row, sizeof(row));
    std::copy(values.begin(), values.end(), client.gradients(1) + 17);
  }
  // Within what is rounded on the way.
  void expectNear(float value, float due) const {
    EXPECT_NEAR(value, due, 1e-6 + harness_->relativeError() * std::fabs(due));
  }
  void expectTensorflowValues(const ParameterClient& client, float v0, float v1) const {
    expectNear(client.parameters(0)[0], v0);
    expectNear(client.parameters(1)[0], v1);
    EXPECT_EQ(client.parameters(1)[16], 3) << "row 0 has a gradient of 0 and must stay";
  }

  static ModelDeclaration vectorModel(uint32_t ps_tasks, int64_t elements_per_ps, double rate) {
    std::vector<VariableParts> variables;
    for (uint32_t ps = 0; ps < ps_tasks; ++ps) {
      variables.push_back({"v" + std::to_string(ps),
                           Shape{elements_per_ps},
                           {{ps, 0, static_cast<uint64_t>(elements_per_ps)}}});
    }
    ModelDeclaration model;
    model.layout = makeLayout(variables, ps_tasks);
    model.optimizer.learning_rate = rate;
    return model;
  }
  static std::vector<std::vector<float>> zeros(const ModelDeclaration& model) {
    std::vector<std::vector<float>> values;
    for (const ShardLayout& shard : model.layout.shards) values.emplace_back(shard.elements);
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
  ModelDeclaration model_;
  std::vector<std::vector<float>> values_;
};

TEST_P(ParameterClientSuite, SyncTwoWorkersGiveTensorflowsValues) {
  Clients clients = start(2, 2, tensorflowModel(2, 2, 2), tensorflowValues());
  inThreads(clients, [this](ParameterClient& client, uint32_t rank) {
    StepState state = client.pull();
    EXPECT_EQ(state.global_step, 0u);
    expectTensorflowValues(client, 0, 1);
    tensorflowGradients(client, rank);
    state = client.exchange(state.next_step, state.next_batch, 0);
    EXPECT_EQ(state.outcome, Outcome::kApplied);
    EXPECT_EQ(state.global_step, 1u);
    EXPECT_FALSE(state.done);
    expectTensorflowValues(client, -0.4f, -1.0f);
    expectNear(client.parameters(1)[17], 3.6F);
    state = client.exchange(state.next_step, state.next_batch, 0);
    EXPECT_EQ(state.global_step, 2u);
    EXPECT_TRUE(state.done);
    expectTensorflowValues(client, -0.8f, -3.0f);
    client.finish();
  });
}

TEST_P(ParameterClientSuite, BackupWorkersLateGradientIsStaleAndHasNoEffect) {
  Clients clients = start(2, 3, tensorflowModel(2, 3, 10), tensorflowValues());
  std::vector<StepState> states(3);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    states[rank] = clients[rank]->pull();
    tensorflowGradients(*clients[rank], rank);
  }
  const auto exchange = [&](uint32_t rank) {
    states[rank] = clients[rank]->exchange(states[rank].next_step, states[rank].next_batch, 0);
  };
  const auto bothExchange = [&](uint32_t a, uint32_t b) {
    std::thread other([&] { exchange(b); });
    exchange(a);
    other.join();
  };
  bothExchange(0, 2);
  EXPECT_EQ(states[0].outcome, Outcome::kApplied);
  EXPECT_EQ(states[2].outcome, Outcome::kApplied);
  expectTensorflowValues(*clients[0], -0.6f, -1.2f);

  exchange(1);
  EXPECT_EQ(states[1].outcome, Outcome::kStale);
  EXPECT_EQ(states[1].global_step, 1u);
  expectTensorflowValues(*clients[1], -0.6f, -1.2f);

  bothExchange(0, 1);
  EXPECT_EQ(states[1].outcome, Outcome::kApplied);
  EXPECT_EQ(states[1].global_step, 2u);
  expectTensorflowValues(*clients[0], -1.0f, -3.2f);
  expectTensorflowValues(*clients[1], -1.0f, -3.2f);
}

TEST_P(ParameterClientSuite, EveryPsAppliesTheSameWorkerSet) {
  constexpr uint32_t kWorkers = 3;
  constexpr uint32_t kPs = 3;
  ModelDeclaration model = vectorModel(kPs, 3, 1.0);
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 2, kWorkers};
  model.steps = 60;
  Clients clients = start(kPs, kWorkers, model, zeros(model));
  // Parameter r counts in how many steps worker r took part.
  inThreads(clients, [](ParameterClient& client, uint32_t rank) {
    StepState state = client.pull();
    while (!state.done) {
      for (uint32_t ps = 0; ps < kPs; ++ps) client.gradients(ps)[rank] = -2;
      state = client.exchange(state.next_step, state.next_batch, 0);
      for (uint32_t ps = 1; ps < kPs; ++ps)
        for (uint32_t worker = 0; worker < kWorkers; ++worker)
          EXPECT_EQ(client.parameters(ps)[worker], client.parameters(0)[worker])
              << "step " << state.next_step;
    }
  });
  clients[0]->pull();
  const float* const taken = clients[0]->parameters(0);
  EXPECT_EQ(taken[0] + taken[1] + taken[2], 120) << "two in each of 60 steps";
}

TEST_P(ParameterClientSuite, MoreReplicasThanWorkersMeansSeveralBatchesEach) {
  // 2 workers, 5 batches: worker 0 contributes 3, worker 1 contributes 2.
  ModelDeclaration model = vectorModel(2, 1, 1.0);
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 5, 2};
  model.steps = 3;
  Clients clients = start(2, 2, model, zeros(model));
  inThreads(clients, [this](ParameterClient& client, uint32_t rank) {
    StepState state = client.pull();
    for (uint64_t step = 0; step < 3; ++step) {
      const uint32_t batches = rank == 0 ? 3 : 2;
      for (uint32_t batch = 0; batch < batches; ++batch) {
        EXPECT_EQ(state.next_step, step);
        EXPECT_EQ(state.next_batch, batch);
        // Written over after each call: a batch that is queued must have been kept.
        const float gradient = -static_cast<float>(10 * rank + batch + 1);
        client.gradients(0)[0] = gradient;
        client.gradients(1)[0] = 2 * gradient;
        state = client.exchange(step, batch, 0);
        EXPECT_EQ(state.outcome, batch + 1 < batches ? Outcome::kQueued : Outcome::kApplied);
        if (state.outcome != Outcome::kQueued) continue;
        // The step's other batches are computed from the same parameters.
        expectNear(client.parameters(0)[0], 5.8f * static_cast<float>(step));
        expectNear(client.parameters(1)[0], 11.6f * static_cast<float>(step));
      }
      // (1 + 2 + 3 + 11 + 12) / 5
      expectNear(client.parameters(0)[0], 5.8f * static_cast<float>(step + 1));
      expectNear(client.parameters(1)[0], 11.6f * static_cast<float>(step + 1));
    }
    EXPECT_TRUE(state.done);
    EXPECT_EQ(state.global_step, 3u);
  });
}

TEST_P(ParameterClientSuite, MovingAveragesComeBesideTheParameters) {
  ModelDeclaration model = vectorModel(2, 3, 1.0);
  model.optimizer.moving_average_decay = 0.5;
  model.steps = 10;
  Clients clients = start(2, 1, model, zeros(model));
  ParameterClient& client = *clients[0];
  StepState state = client.pull();
  for (const float average : {0.5f, 1.25f, 2.125f}) {  // of 1, 2, 3
    for (uint32_t ps = 0; ps < 2; ++ps) client.gradients(ps)[2] = -1;
    state = client.exchange(state.next_step, state.next_batch, 0);
    client.pullAverages();
    for (uint32_t ps = 0; ps < 2; ++ps) {
      EXPECT_EQ(client.averages(ps)[2], average);
      EXPECT_EQ(client.parameters(ps)[2], static_cast<float>(state.global_step));
    }
  }
}

TEST_P(ParameterClientSuite, AveragesThatNobodyKeepsAreRefused) {
  ModelDeclaration model = vectorModel(1, 3, 1.0);
  model.steps = 1;
  Clients clients = start(1, 1, model, zeros(model));
  try {
    clients[0]->pullAverages();
    FAIL() << "there are none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("moving_average"), std::string::npos) << error.message();
  }
}

TEST_P(ParameterClientSuite, AsyncLostWorkersStepIsDoneByAnother) {
  ModelDeclaration model = vectorModel(2, 1, 1.0);
  model.steps = 5;
  Clients clients = start(2, 2, model, zeros(model));
  clients[1]->pull();  // is granted a step it never pushes
  std::atomic<uint64_t> pushes{0};
  std::thread worker([&] {
    ParameterClient& client = *clients[0];
    client.gradients(0)[0] = client.gradients(1)[0] = -1;
    StepState state = client.pull();
    while (!state.done) {
      state = client.exchange(state.next_step, state.next_batch, 0);
      ++pushes;
    }
    EXPECT_EQ(state.global_step, 5u);
    EXPECT_EQ(client.parameters(0)[0], 5);
    EXPECT_EQ(client.parameters(1)[0], 5);
  });
  while (pushes < 3) std::this_thread::yield();
  harness_->loseWorker(1);
  worker.join();
  EXPECT_EQ(pushes, 5u);
}

TEST_P(ParameterClientSuite, ALostWorkerIsNamedToThoseWhoWaitForIt) {
  Clients clients = start(2, 2, tensorflowModel(2, 2, 10), tensorflowValues());
  const StepState state = clients[0]->pull();
  clients[1]->pull();
  harness_->loseWorker(1);
  const std::string message = errorOf(
      [&] { clients[0]->exchange(state.next_step, state.next_batch, 0); }, ErrorCode::kUnavailable);
  EXPECT_NE(message.find("worker/1 was lost"), std::string::npos) << message;
  EXPECT_NE(message.find("step 0"), std::string::npos) << message;
}

TEST_P(ParameterClientSuite, AReplacedProcessIsFencedAndTheNewOneGoesOn) {
  Clients clients = start(2, 1, tensorflowModel(1, 1, 10), tensorflowValues());
  tensorflowGradients(*clients[0], 0);
  StepState state = clients[0]->pull();
  state = clients[0]->exchange(state.next_step, state.next_batch, 0);
  EXPECT_EQ(state.global_step, 1u);

  const std::unique_ptr<ParameterClient> newer = connect(0);
  const std::string message = errorOf(
      [&] { clients[0]->exchange(state.next_step, state.next_batch, 0); }, ErrorCode::kUnavailable);
  EXPECT_NE(message.find("fenced: worker/0 was replaced"), std::string::npos) << message;

  state = newer->pull();
  EXPECT_EQ(state.global_step, 1u) << "a restarted chief does not initialise again";
  expectTensorflowValues(*newer, -0.2f, -0.8f);
  tensorflowGradients(*newer, 0);
  EXPECT_EQ(newer->exchange(state.next_step, state.next_batch, 0).global_step, 2u);
}

TEST_P(ParameterClientSuite, ADifferentModelIsRefusedWithTheDifference) {
  Clients clients = start(2, 2, tensorflowModel(2, 2, 10), tensorflowValues());
  ModelDeclaration other = model_;
  other.optimizer.learning_rate = 0.5;
  other.steps = 11;
  const std::unique_ptr<ParameterClient> client = harness_->connect(1);
  const std::string message = errorOf([&] { client->declare(other); }, ErrorCode::kBadConfig);
  EXPECT_NE(message.find("learning_rate is 0.5, the job's is 2"), std::string::npos) << message;
  EXPECT_NE(message.find("steps is 11, the job's is 10"), std::string::npos) << message;
}

TEST_P(ParameterClientSuite, SyncRunsGiveTheSameBitsInEveryOrderOfArrival) {
  constexpr uint32_t kWorkers = 3;
  ModelDeclaration model = vectorModel(2, 40, 0.05);
  model.optimizer.kind = cluster::OptimizerSpec::Kind::kAdam;
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 7, kWorkers};
  model.steps = 12;
  std::vector<float> first;
  for (int run = 0; run < 4; ++run) {
    Clients clients = start(2, kWorkers, model, zeros(model));
    inThreads(clients, [](ParameterClient& client, uint32_t rank) {
      StepState state = client.pull();
      while (!state.done) {
        Random random(state.next_step, 100 * rank + state.next_batch);
        for (uint32_t ps = 0; ps < 2; ++ps) {
          for (int i = 0; i < 40; ++i) client.gradients(ps)[i] = random.normal();
        }
        state = client.exchange(state.next_step, state.next_batch, 0);
      }
    });
    clients[0]->pull();
    std::vector<float> bits(clients[0]->parameters(0), clients[0]->parameters(0) + 40);
    bits.insert(bits.end(), clients[0]->parameters(1), clients[0]->parameters(1) + 40);
    if (run == 0) first = bits;
    EXPECT_EQ(std::memcmp(bits.data(), first.data(), bits.size() * sizeof(float)), 0);
  }
}

TEST_P(ParameterClientSuite, NobodyLeavesABarrierBeforeAllHaveArrived) {
  ModelDeclaration model = vectorModel(1, 1, 1.0);
  model.steps = 1;
  Clients clients = start(1, 4, model, zeros(model));
  std::atomic<int> arrived{0};
  inThreads(clients, [&](ParameterClient& client, uint32_t) {
    for (int round = 1; round <= 5; ++round) {
      ++arrived;
      client.barrier("round " + std::to_string(round));
      EXPECT_GE(arrived, 4 * round);
    }
  });
}

}  // namespace dtf::ps
