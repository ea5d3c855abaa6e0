#pragma once

// Bounded training, whatever carries its words: see parameter_client_suite.h.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/conformance/parameter_client_suite.h"

namespace dtf::ps {

class BoundedSuite : public ParameterClientSuite {
 protected:
  static constexpr uint32_t kPs = 3;

  // Each gradient adds one to every parameter: they are how many have been applied.
  Clients startBounded(uint32_t workers, uint32_t staleness, uint64_t steps,
                       bool overlaps = false) {
    ModelDeclaration model = vectorModel(kPs, 2000, 1.0);
    model.replication = {.mode = cluster::ReplicationSpec::Mode::kBounded,
                         .staleness = staleness,
                         .overlap = overlaps};
    model.steps = steps;
    Clients clients = start(kPs, workers, model, zeros(model));
    for (const auto& client : clients)
      for (uint32_t ps = 0; ps < kPs; ++ps) std::fill_n(client->gradients(ps), 2000, -1.0F);
    return clients;
  }
  static uint64_t updatesOf(const ParameterClient& client, uint32_t ps) {
    return static_cast<uint64_t>(client.parameters(ps)[1999]);
  }
};

// Bulk synchronous training, but that each gradient is applied as it comes.
TEST_P(BoundedSuite, WithStalenessZeroEveryStepHasAllGradientsOfTheStepsBefore) {
  constexpr uint32_t kWorkers = 3;
  constexpr uint64_t kSteps = 50;
  Clients clients = startBounded(kWorkers, 0, kSteps * kWorkers);
  inThreads(clients, [&](ParameterClient& client, uint32_t) {
    StepState state = client.pull();
    client.barrier("all have begun");
    while (!state.done) {
      state = client.exchange(state.next_step, state.next_batch, 0);
      for (uint32_t ps = 0; ps < kPs; ++ps) {
        EXPECT_EQ(updatesOf(client, ps), kWorkers * state.next_step) << "ps/" << ps;
      }
    }
    EXPECT_EQ(state.next_step, kSteps);
    client.barrier("trained");
    client.finish();
  });
}

TEST_P(BoundedSuite, NobodyRunsFurtherAheadOfWhoStandsStill) {
  constexpr uint32_t kStaleness = 3;
  constexpr uint64_t kStandsAt = 5;
  Clients clients = startBounded(2, kStaleness, 1000);
  std::atomic<uint64_t> fast{0};
  std::atomic<bool> goes_on{false};
  inThreads(clients, [&](ParameterClient& client, uint32_t rank) {
    StepState state = client.pull();
    client.barrier("all have begun");
    while (!state.done) {
      if (rank == 1 && state.next_step == kStandsAt) {
        // The other begins so many steps, and pushes them, but isn't answered to the last.
        while (fast < kStandsAt + kStaleness + 1) std::this_thread::yield();
        // Time for it to be answered, if it is: that it isn't shows only so.
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
        while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
        EXPECT_EQ(fast, kStandsAt + kStaleness + 1);
        goes_on = true;
      }
      if (rank == 0) fast = state.next_step + 1;
      state = client.exchange(state.next_step, state.next_batch, 0);
      if (rank == 0 && state.next_step > kStandsAt + kStaleness) {
        EXPECT_TRUE(goes_on) << state.next_step;
      }
    }
    client.barrier("trained");
    client.finish();
  });
}

// A step begins before the answer to the one before: they may lie one further apart.
TEST_P(BoundedSuite, WithOverlapAllStepsAreDoneOnce) {
  constexpr uint32_t kWorkers = 3;
  constexpr uint64_t kSteps = 300;
  Clients clients = startBounded(kWorkers, 1, kSteps, true);
  inThreads(clients, [&](ParameterClient& client, uint32_t rank) {
    StepState state = client.pull();
    while (!state.done) {
      for (uint32_t ps = 0; ps < kPs; ++ps) std::fill_n(client.gradients(ps), 2000, -1.0F);
      client.startExchange(state.next_step, state.next_batch, 0);
      state = client.finishExchange();
    }
    client.barrier("trained");
    if (rank == 0) client.pull();
    for (uint32_t ps = 0; ps < kPs && rank == 0; ++ps) {
      EXPECT_EQ(updatesOf(client, ps), kSteps);
    }
    client.barrier("seen");
    client.finish();
  });
}

TEST_P(BoundedSuite, AWorkerThatIsLostHoldsNobodyBackAndReturnsToWhereTheOthersAre) {
  Clients clients = startBounded(2, 1, 100);
  StepState fast = clients[0]->pull();
  clients[1]->pull();
  harness_->loseWorker(1);
  for (int i = 0; i < 40; ++i) fast = clients[0]->exchange(fast.next_step, 0, 0);
  const std::unique_ptr<ParameterClient> again = connect(1);
  StepState state = again->pull();
  for (uint32_t ps = 0; ps < kPs; ++ps) {
    std::fill_n(again->gradients(ps), 2000, -1.0F);
    EXPECT_EQ(updatesOf(*again, ps), 40u);
  }
  EXPECT_EQ(state.next_step, 0u) << "its own count";
  // From here on each is held by the other.
  std::thread other([&] {
    while (!state.done) state = again->exchange(state.next_step, 0, 0);
  });
  while (!fast.done) fast = clients[0]->exchange(fast.next_step, 0, 0);
  other.join();
  EXPECT_EQ(fast.next_step + state.next_step, 100u);
  EXPECT_GE(state.next_step, 29u)
      << "of the 60 that were left, up to 1 step more or less than half";
  EXPECT_LE(state.next_step, 31u);
}

}  // namespace dtf::ps
