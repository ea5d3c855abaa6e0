#pragma once

// Bounded training, over any transport: see exchange_client_suite.h.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/conformance/exchange_client_suite.h"

namespace dtf::exchange {

class BoundedSuite : public ExchangeClientSuite {
 protected:
  static constexpr uint32_t kPs = 3;

  // Each gradient adds one to every parameter, so that the parameters count the updates.
  Clients startBounded(uint32_t workers, uint32_t staleness, uint64_t steps,
                       bool overlaps = false) {
    arena::ModelDeclaration model = vectorModel(kPs, 2000, 1.0);
    model.replication = {.mode = cluster::ReplicationSpec::Mode::kBounded,
                         .staleness = staleness,
                         .overlap = overlaps};
    model.steps = steps;
    Clients clients = start(kPs, workers, model, zeros(model));
    for (const auto& client : clients)
      for (uint32_t ps = 0; ps < kPs; ++ps) std::fill_n(client->gradients(ps), 2000, -1.0F);
    return clients;
  }
  static uint64_t updatesOf(const ExchangeClient& client, uint32_t ps) {
    return static_cast<uint64_t>(client.view(Values::kParameters, ps)[1999]);
  }
};

// Bulk synchronous training, except that each gradient is applied as it comes. The reply to a
// repeated push has the parameters of a later time: the others may have pushed the next step, which
// is as far as they get.
TEST_P(BoundedSuite, WithStalenessZeroEveryStepHasAllGradientsOfTheStepsBefore) {
  constexpr uint32_t kWorkers = 3;
  constexpr uint64_t kSteps = 50;
  Clients clients = startBounded(kWorkers, 0, kSteps * kWorkers);
  inThreads(clients, [&](ExchangeClient& client, uint32_t) {
    replication::StepState state = client.pull();
    client.job().barrier("all have begun");
    while (!state.done) {
      state = pushPull(client, state.next_step, state.next_batch, 0);
      for (uint32_t ps = 0; ps < kPs; ++ps) {
        const uint64_t before = kWorkers * state.next_step;
        EXPECT_GE(updatesOf(client, ps), before) << "ps/" << ps;
        EXPECT_LT(updatesOf(client, ps), before + kWorkers) << "ps/" << ps;
      }
    }
    EXPECT_EQ(state.next_step, kSteps);
    client.job().barrier("trained");
    client.job().leave();
  });
}

TEST_P(BoundedSuite, NobodyRunsFurtherAheadOfWhoStandsStill) {
  constexpr uint32_t kStaleness = 3;
  constexpr uint64_t kStandsAt = 5;
  Clients clients = startBounded(2, kStaleness, 1000);
  std::atomic<uint64_t> fast{0};
  std::atomic<bool> goes_on{false};
  inThreads(clients, [&](ExchangeClient& client, uint32_t rank) {
    replication::StepState state = client.pull();
    client.job().barrier("all have begun");
    while (!state.done) {
      if (rank == 1 && state.next_step == kStandsAt) {
        // The other worker begins and pushes this many steps, but gets no reply to the last push.
        while (fast < kStandsAt + kStaleness + 1) std::this_thread::yield();
        // A missing reply shows only in time: waits long enough for a wrong one to arrive.
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
        while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
        EXPECT_EQ(fast, kStandsAt + kStaleness + 1);
        goes_on = true;
      }
      if (rank == 0) fast = state.next_step + 1;
      state = pushPull(client, state.next_step, state.next_batch, 0);
      if (rank == 0 && state.next_step > kStandsAt + kStaleness) {
        EXPECT_TRUE(goes_on) << state.next_step;
      }
    }
    client.job().barrier("trained");
    client.job().leave();
  });
}

// A step begins before the reply to the previous one, so two workers may lie one step further
// apart.
TEST_P(BoundedSuite, WithOverlapAllStepsAreDoneOnce) {
  constexpr uint32_t kWorkers = 3;
  constexpr uint64_t kSteps = 300;
  Clients clients = startBounded(kWorkers, 1, kSteps, true);
  inThreads(clients, [&](ExchangeClient& client, uint32_t rank) {
    replication::StepState state = client.pull();
    while (!state.done) {
      for (uint32_t ps = 0; ps < kPs; ++ps) std::fill_n(client.gradients(ps), 2000, -1.0F);
      client.begin(state.next_step, state.next_batch, 0, Gradient::kWhole);
      state = client.finish();
    }
    client.job().barrier("trained");
    if (rank == 0) client.pull();
    for (uint32_t ps = 0; ps < kPs && rank == 0; ++ps) {
      EXPECT_EQ(updatesOf(client, ps), kSteps);
    }
    client.job().barrier("seen");
    client.job().leave();
  });
}

TEST_P(BoundedSuite, AWorkerThatIsLostHoldsNobodyBackAndReturnsToWhereTheOthersAre) {
  Clients clients = startBounded(2, 1, 100);
  replication::StepState fast = clients[0]->pull();
  clients[1]->pull();
  harness_->loseWorker(1);
  for (int i = 0; i < 40; ++i) fast = pushPull(*clients[0], fast.next_step, 0, 0);
  const std::unique_ptr<ExchangeClient> again = connect(1);
  replication::StepState state = again->pull();
  for (uint32_t ps = 0; ps < kPs; ++ps) {
    std::fill_n(again->gradients(ps), 2000, -1.0F);
    EXPECT_EQ(updatesOf(*again, ps), 40u);
  }
  EXPECT_EQ(state.next_step, 0u) << "its own count";
  // From here on each worker holds the other one back.
  std::thread other([&] {
    while (!state.done) state = pushPull(*again, state.next_step, 0, 0);
  });
  while (!fast.done) fast = pushPull(*clients[0], fast.next_step, 0, 0);
  other.join();
  EXPECT_EQ(fast.next_step + state.next_step, 100u);
  EXPECT_GE(state.next_step, 29u)
      << "of the 60 that were left, up to 1 step more or less than half";
  EXPECT_LE(state.next_step, 31u);
}

}  // namespace dtf::exchange
