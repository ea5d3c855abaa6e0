#pragma once

// Exchanges that go on while their worker computes, over any transport: see
// exchange_client_suite.h.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "common/base/mutex.h"
#include "tests/conformance/exchange_client_suite.h"

namespace dtf::exchange {

class OverlapSuite : public ExchangeClientSuite {
 protected:
  static arena::ModelDeclaration overlappedModel(uint32_t ps_tasks, int64_t elements,
                                                 uint64_t steps) {
    arena::ModelDeclaration model = vectorModel(ps_tasks, elements, 1.0);
    model.replication.overlap = true;
    model.steps = steps;
    return model;
  }
  static void fill(ExchangeClient& client, uint32_t ps_tasks, size_t elements, float value) {
    for (uint32_t ps = 0; ps < ps_tasks; ++ps) std::fill_n(client.gradients(ps), elements, value);
  }
};

// The next gradient is written while the previous one may still be read. The parameters that a
// gradient is computed from don't change meanwhile.
TEST_P(OverlapSuite, WhatIsReadAndWrittenDuringAnExchangeIsNotTheExchanges) {
  constexpr size_t kElements = 1 << 18;
  const arena::ModelDeclaration model = overlappedModel(2, kElements, 20);
  Clients clients = start(2, 1, model, zeros(model));
  ExchangeClient& client = *clients[0];
  replication::StepState state = client.pull();
  const float* before[] = {client.view(Values::kParameters, 0),
                           client.view(Values::kParameters, 1)};
  fill(client, 2, kElements, -1);
  for (float value = 1; !state.done; ++value) {
    const std::vector<float*> pushed = {client.gradients(0), client.gradients(1)};
    client.begin(state.next_step, state.next_batch, value, Gradient::kWhole);
    for (uint32_t ps = 0; ps < 2; ++ps) EXPECT_NE(client.gradients(ps), pushed[ps]);
    fill(client, 2, kElements, -(value + 1));
    const float applied = value * (value - 1) / 2;  // 1 + 2 + ... of the previous exchanges
    for (const float* const parameters : before)
      EXPECT_EQ(std::count(parameters, parameters + kElements, applied), ssize_t{kElements});
    state = client.finish();
    EXPECT_EQ(state.loss, value);
    EXPECT_EQ(state.staleness, value == 1 ? 0u : 1u) << "it lacks the one before";
    for (uint32_t ps = 0; ps < 2; ++ps) {
      before[ps] = client.view(Values::kParameters, ps);
      EXPECT_EQ(std::count(before[ps], before[ps] + kElements, applied + value),
                ssize_t{kElements});
    }
  }
  EXPECT_EQ(state.global_step, 20u);
  client.pull();
  EXPECT_EQ(client.view(Values::kParameters, 1)[0], 210);
  client.job().leave();
}

TEST_P(OverlapSuite, TheArenasOfRowsGrowEachForItself) {
  arena::ModelDeclaration model = tensorflowModel(2, 2, 6);
  model.replication = {};
  model.replication.overlap = true;
  model.optimizer.learning_rate = 1;
  Clients clients = start(2, 1, model, tensorflowValues());
  ExchangeClient& client = *clients[0];
  replication::StepState state = client.pull();
  pushRow(client, 1, {-1});
  for (int batch = 0; !state.done; ++batch) {
    client.begin(state.next_step, state.next_batch, 0, Gradient::kWhole);
    if (batch % 2 == 0) {
      client.setRows(RowsOf::kGradient, 1, {{0}, {}});
    } else {
      pushRow(client, 1, {-1});
    }
    state = client.finish();
    EXPECT_EQ(client.view(Values::kParameters, 1)[17], 4 + static_cast<float>(batch / 2 + 1))
        << batch;
  }
}

// A gradient is computed from the parameters of one exchange before: they lack even the worker's
// own last update.
TEST_P(OverlapSuite, LosesNoUpdateAndCountsTheWorkersOwnAsStale) {
  constexpr uint32_t kWorkers = 4;
  constexpr uint64_t kSteps = kWorkers * 300;
  const arena::ModelDeclaration model = overlappedModel(2, 1000, kSteps);
  Clients clients = start(2, kWorkers, model, zeros(model));
  std::atomic<uint64_t> pushes{0};
  Mutex mutex;
  replication::StalenessHistogram answered, counted;
  inThreads(clients, [&](ExchangeClient& client, uint32_t rank) {
    fill(client, 2, 1000, -1);
    replication::StepState state = client.pull();
    client.job().barrier("all have seen version 0");
    for (uint64_t batch = 0; !state.done; ++batch) {
      const uint64_t seen = state.global_step;
      client.begin(state.next_step, state.next_batch, 0, Gradient::kWhole);
      fill(client, 2, 1000, -1);
      state = client.finish();
      ++pushes;
      const MutexLock lock(mutex);
      answered.add(state.staleness);
      if (batch > 0) EXPECT_GE(state.staleness, 1u);
      EXPECT_LT(seen, state.global_step);
    }
    client.job().barrier("pushed");
    client.pull();
    for (uint32_t ps = 0; ps < 2; ++ps)
      EXPECT_EQ(std::count(client.view(Values::kParameters, ps),
                           client.view(Values::kParameters, ps) + 1000, kSteps),
                1000);
    if (rank == 0) counted = harness_->staleness();
    client.job().barrier("counted");
    client.job().leave();
  });
  EXPECT_EQ(pushes, kSteps) << "exactly as many as the job has steps";
  EXPECT_EQ(counted.counts, answered.counts);
}

TEST_P(OverlapSuite, WhyAnExchangeFailedIsSaidWhenItIsFinished) {
  const arena::ModelDeclaration model = overlappedModel(2, 1, 10);
  Clients clients = start(2, 1, model, zeros(model));
  const replication::StepState state = clients[0]->pull();
  const std::unique_ptr<ExchangeClient> newer = connect(0);
  clients[0]->begin(state.next_step, state.next_batch, 0, Gradient::kWhole);
  const std::string message = errorOf([&] { clients[0]->finish(); }, ErrorCode::kUnavailable);
  EXPECT_NE(message.find("fenced: worker/0 was replaced"), std::string::npos) << message;
}

// For example because the batch that is computed meanwhile fails.
TEST_P(OverlapSuite, AClientMayEndBeforeItsExchangeIsFinished) {
  const arena::ModelDeclaration model = overlappedModel(2, 1 << 16, 10);
  Clients clients = start(2, 2, model, zeros(model));
  const replication::StepState state = clients[0]->pull();
  fill(*clients[0], 2, 1 << 16, -1);
  clients[0]->begin(state.next_step, state.next_batch, 0, Gradient::kWhole);
  clients[0] = nullptr;
  clients[1]->pull();
  for (uint32_t ps = 0; ps < 2; ++ps) EXPECT_EQ(clients[1]->view(Values::kParameters, ps)[1], 1);
}

// Whether or not it can send one that grows, and whether or not exchanges overlap.
TEST_P(OverlapSuite, EveryClientTakesAGrowingGradient) {
  for (const bool overlaps : {false, true}) {
    arena::ModelDeclaration model = vectorModel(2, 100, 1.0);
    model.replication.overlap = overlaps;
    model.steps = 5;
    Clients clients = start(2, 1, model, zeros(model));
    ExchangeClient& client = *clients[0];
    EXPECT_EQ(client.traits().overlaps, overlaps);
    replication::StepState state = client.pull();
    for (float value = 1; !state.done; ++value) {
      client.begin(state.next_step, state.next_batch, 0, Gradient::kGrowing);
      for (const uint64_t end : {50, 100}) {
        for (uint32_t ps = 0; ps < 2; ++ps) std::fill_n(client.gradients(ps) + end - 50, 50, -1.0F);
        client.written(std::vector<uint64_t>(2, end));
      }
      state = client.finish();
      for (uint32_t ps = 0; ps < 2; ++ps)
        EXPECT_EQ(client.view(Values::kParameters, ps)[99], value);
    }
    EXPECT_EQ(state.global_step, 5u);
    client.job().leave();
  }
}

TEST_P(OverlapSuite, AGrowingGradientThatFailsHasNoEffect) {
  arena::ModelDeclaration model = vectorModel(2, 100, 1.0);
  model.steps = 2;  // one for each worker: nobody waits for the other
  Clients clients = start(2, 2, model, zeros(model));
  const replication::StepState state = clients[0]->pull();
  clients[0]->begin(state.next_step, state.next_batch, 0, Gradient::kGrowing);
  std::fill_n(clients[0]->gradients(0), 50, std::nanf(""));
  clients[0]->written(std::vector<uint64_t>{50, 0});
  const Error failure(ErrorCode::kTrainingFailed, "the norm is nan");
  clients[0]->finish(&failure);
  clients[0] = nullptr;
  clients[1]->pull();
  EXPECT_EQ(clients[1]->view(Values::kParameters, 0)[0], 0);
}

}  // namespace dtf::exchange
