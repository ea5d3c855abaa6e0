#pragma once

// Exchanges that go on while their worker computes, whatever carries their words: see
// parameter_client_suite.h.

#include <algorithm>
#include <atomic>
#include <vector>

#include "common/base/mutex.h"
#include "tests/conformance/parameter_client_suite.h"

namespace dtf::ps {

class OverlapSuite : public ParameterClientSuite {
 protected:
  static ModelDeclaration overlappedModel(uint32_t ps_tasks, int64_t elements, uint64_t steps) {
    ModelDeclaration model = vectorModel(ps_tasks, elements, 1.0);
    model.replication.overlap = true;
    model.steps = steps;
    return model;
  }
  static void fill(ParameterClient& client, uint32_t ps_tasks, size_t elements, float value) {
    for (uint32_t ps = 0; ps < ps_tasks; ++ps) std::fill_n(client.gradients(ps), elements, value);
  }
};

// The next gradient is written while the one before may still be read, and the parameters that a
// gradient is computed from stay.
TEST_P(OverlapSuite, WhatIsReadAndWrittenDuringAnExchangeIsNotTheExchanges) {
  constexpr size_t kElements = 1 << 18;
  const ModelDeclaration model = overlappedModel(2, kElements, 20);
  Clients clients = start(2, 1, model, zeros(model));
  ParameterClient& client = *clients[0];
  StepState state = client.pull();
  const float* before[] = {client.parameters(0), client.parameters(1)};
  fill(client, 2, kElements, -1);
  for (float value = 1; !state.done; ++value) {
    const std::vector<float*> pushed = {client.gradients(0), client.gradients(1)};
    client.startExchange(state.next_step, state.next_batch, value);
    for (uint32_t ps = 0; ps < 2; ++ps) EXPECT_NE(client.gradients(ps), pushed[ps]);
    fill(client, 2, kElements, -(value + 1));
    const float applied = value * (value - 1) / 2;  // 1 + 2 + ... of the exchanges before
    for (const float* const parameters : before)
      EXPECT_EQ(std::count(parameters, parameters + kElements, applied), ssize_t{kElements});
    state = client.finishExchange();
    EXPECT_EQ(state.loss, value);
    EXPECT_EQ(state.staleness, value == 1 ? 0u : 1u) << "it lacks the one before";
    for (uint32_t ps = 0; ps < 2; ++ps) {
      before[ps] = client.parameters(ps);
      EXPECT_EQ(std::count(before[ps], before[ps] + kElements, applied + value),
                ssize_t{kElements});
    }
  }
  EXPECT_EQ(state.global_step, 20u);
  client.pull();
  EXPECT_EQ(client.parameters(1)[0], 210);
  client.finish();
}

TEST_P(OverlapSuite, TheArenasOfRowsGrowEachForItself) {
  ModelDeclaration model = tensorflowModel(2, 2, 6);
  model.replication = {};
  model.replication.overlap = true;
  model.optimizer.learning_rate = 1;
  Clients clients = start(2, 1, model, tensorflowValues());
  ParameterClient& client = *clients[0];
  StepState state = client.pull();
  pushRow(client, 1, {-1});
  for (int batch = 0; !state.done; ++batch) {
    client.startExchange(state.next_step, state.next_batch, 0);
    if (batch % 2 == 0) {
      client.setRows(1, std::vector<uint32_t>{0});
    } else {
      pushRow(client, 1, {-1});
    }
    state = client.finishExchange();
    EXPECT_EQ(client.parameters(1)[17], 4 + static_cast<float>(batch / 2 + 1)) << batch;
  }
}

// A gradient is of the parameters before those that came last: it lacks its worker's own one
// before, too.
TEST_P(OverlapSuite, LosesNoUpdateAndCountsTheWorkersOwnAsStale) {
  constexpr uint32_t kWorkers = 4;
  constexpr uint64_t kSteps = kWorkers * 300;
  const ModelDeclaration model = overlappedModel(2, 1000, kSteps);
  Clients clients = start(2, kWorkers, model, zeros(model));
  std::atomic<uint64_t> pushes{0};
  Mutex mutex;
  StalenessHistogram answered, counted;
  inThreads(clients, [&](ParameterClient& client, uint32_t rank) {
    fill(client, 2, 1000, -1);
    StepState state = client.pull();
    client.barrier("all have seen version 0");
    for (uint64_t batch = 0; !state.done; ++batch) {
      const uint64_t seen = state.global_step;
      client.startExchange(state.next_step, state.next_batch, 0);
      fill(client, 2, 1000, -1);
      state = client.finishExchange();
      ++pushes;
      const MutexLock lock(mutex);
      answered.add(state.staleness);
      if (batch > 0) EXPECT_GE(state.staleness, 1u);
      EXPECT_LT(seen, state.global_step);
    }
    client.barrier("pushed");
    client.pull();
    for (uint32_t ps = 0; ps < 2; ++ps)
      EXPECT_EQ(std::count(client.parameters(ps), client.parameters(ps) + 1000, kSteps), 1000);
    if (rank == 0) counted = harness_->staleness();
    client.barrier("counted");
    client.finish();
  });
  EXPECT_EQ(pushes, kSteps) << "exactly as many as the job has steps";
  EXPECT_EQ(counted.counts, answered.counts);
}

TEST_P(OverlapSuite, WhyAnExchangeFailedIsSaidWhenItIsFinished) {
  const ModelDeclaration model = overlappedModel(2, 1, 10);
  Clients clients = start(2, 1, model, zeros(model));
  const StepState state = clients[0]->pull();
  const std::unique_ptr<ParameterClient> newer = connect(0);
  clients[0]->startExchange(state.next_step, state.next_batch, 0);
  const std::string message =
      errorOf([&] { clients[0]->finishExchange(); }, ErrorCode::kUnavailable);
  EXPECT_NE(message.find("fenced: worker/0 was replaced"), std::string::npos) << message;
}

// As when the batch that is computed meanwhile fails.
TEST_P(OverlapSuite, AClientMayEndBeforeItsExchangeIsFinished) {
  const ModelDeclaration model = overlappedModel(2, 1 << 16, 10);
  Clients clients = start(2, 2, model, zeros(model));
  const StepState state = clients[0]->pull();
  fill(*clients[0], 2, 1 << 16, -1);
  clients[0]->startExchange(state.next_step, state.next_batch, 0);
  clients[0] = nullptr;
  clients[1]->pull();
  for (uint32_t ps = 0; ps < 2; ++ps) EXPECT_EQ(clients[1]->parameters(ps)[1], 1);
}

}  // namespace dtf::ps
