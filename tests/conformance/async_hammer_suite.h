#pragma once

// Many workers push asynchronously, as fast as they can, over any transport: see
// exchange_client_suite.h.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "common/base/mutex.h"
#include "tests/conformance/exchange_client_suite.h"

namespace dtf::exchange {

class AsyncHammerSuite : public ExchangeClientSuite {
 protected:
  // 8 workers push +1 to a scalar and to a vector, asynchronously, as fast as they can.
  void hammer(uint64_t elements, uint64_t pushes_each) {
    constexpr uint32_t kWorkers = 8;
    const uint64_t steps = kWorkers * pushes_each;
    arena::ModelDeclaration model;
    model.layout =
        arena::makeLayout({{"scalar", Shape{}, {{0, 0, 1}}},
                           {"vector", Shape{static_cast<int64_t>(elements)}, {{1, 0, elements}}}},
                          2);
    model.optimizer.learning_rate = 1.0;
    model.steps = steps;
    Clients clients = start(2, kWorkers, model, zeros(model));
    std::atomic<uint64_t> pushes{0}, first_staleness{0};
    Mutex mutex;
    replication::StalenessHistogram answered, counted;
    inThreads(clients, [&](ExchangeClient& client, uint32_t rank) {
      client.gradients(0)[0] = -1;
      std::fill_n(client.gradients(1), elements, -1.0f);
      replication::StepState state = client.pull();
      client.job().barrier("all have seen version 0");
      for (bool first = true; !state.done; first = false) {
        const uint64_t seen = state.global_step;
        state = pushPull(client, state.next_step, state.next_batch, 0);
        ++pushes;
        const MutexLock lock(mutex);
        answered.add(state.staleness);
        if (first) first_staleness += state.staleness;
        EXPECT_LT(seen + state.staleness, state.global_step)
            << "as many updates came between as the staleness says";
      }
      client.job().barrier("pushed");
      client.pull();
      EXPECT_EQ(client.view(Values::kParameters, 0)[0], static_cast<float>(steps));
      EXPECT_EQ(client.view(Values::kParameters, 1)[0], static_cast<float>(steps));
      EXPECT_EQ(client.view(Values::kParameters, 1)[elements - 1], static_cast<float>(steps));
      if (rank == 0) counted = harness_->staleness();
      client.job().barrier("counted");
      client.job().leave();
    });
    EXPECT_EQ(pushes, steps) << "exactly as many as the job has steps";
    // All gradients of the first round are computed from version 0, so the k-th of them is at least
    // k stale when it is applied.
    EXPECT_GE(first_staleness, 28u);
    EXPECT_EQ(counted.counts, answered.counts);
    EXPECT_EQ(counted.sum, answered.sum);
    EXPECT_EQ(counted.max, answered.max);
  }
};

TEST_P(AsyncHammerSuite, LosesNoUpdate) {
  hammer(1000, 1000);
}

// Each worker pushes 20 times, or DTF_HAMMER_PUSHES times.
TEST_P(AsyncHammerSuite, OfAMillionElementsLosesNoUpdate) {
  const char* wanted = std::getenv("DTF_HAMMER_PUSHES");
  hammer(1 << 20, wanted == nullptr ? 20 : std::stoull(wanted));
}

}  // namespace dtf::exchange
