#pragma once

// Pushes that begin before their gradient is written, over any transport: see
// exchange_client_suite.h.

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/conformance/exchange_client_suite.h"

namespace dtf::exchange {

class StreamSuite : public ExchangeClientSuite {
 protected:
  static constexpr uint32_t kPs = 2;
  static constexpr size_t kElements = 1 << 18;

  static arena::ModelDeclaration streamedModel(uint64_t steps,
                                               const cluster::ReplicationSpec& replication = {}) {
    arena::ModelDeclaration model = vectorModel(kPs, kElements, 1.0);
    model.replication = replication;
    model.steps = steps;
    return model;
  }

  // Writes the elements from `begin` to below `end` of all ps.
  static void write(ExchangeClient& client, float value, size_t begin, size_t end) {
    for (uint32_t ps = 0; ps < kPs; ++ps)
      std::fill(client.gradients(ps) + begin, client.gradients(ps) + end, value);
    client.written(std::vector<uint64_t>(kPs, end));
  }
  // Writes all elements, in pieces of odd sizes.
  static void writeAll(ExchangeClient& client, float value) {
    for (size_t begin = 0, end; begin < kElements; begin = end) {
      end = std::min(kElements, begin + 9'001);
      write(client, value, begin, end);
    }
  }
  static void poison(ExchangeClient& client) {
    for (uint32_t ps = 0; ps < kPs; ++ps)
      std::fill_n(client.gradients(ps), kElements, std::nanf(""));
  }
  static void expectAll(const ExchangeClient& client, float value) {
    for (uint32_t ps = 0; ps < kPs; ++ps)
      EXPECT_EQ(std::count(client.view(Values::kParameters, ps),
                           client.view(Values::kParameters, ps) + kElements, value),
                ssize_t{kElements})
          << "ps/" << ps << " has " << client.view(Values::kParameters, ps)[0];
  }
  static replication::StepState pushStreamed(ExchangeClient& client,
                                             const replication::StepState& due, float value) {
    client.begin(due.next_step, due.next_batch, value, Gradient::kGrowing);
    writeAll(client, value);
    return client.finish();
  }
};

// The push sends the values that were written last. The parameters that a gradient is computed from
// stay until finish() is called.
TEST_P(StreamSuite, TheParametersStayUntilThePushIsFinished) {
  const arena::ModelDeclaration model = streamedModel(1000);
  Clients clients = start(kPs, 2, model, zeros(model));
  ExchangeClient& client = *clients[0];
  replication::StepState state = client.pull();
  float applied = 0;
  for (float value = 1; value <= 20; ++value) {
    const float* before[] = {client.view(Values::kParameters, 0),
                             client.view(Values::kParameters, 1)};
    poison(client);
    client.begin(state.next_step, state.next_batch, value, Gradient::kGrowing);
    writeAll(client, -value);
    // Once another worker sees the update, the reply is on its way.
    while (clients[1]->pull().global_step < static_cast<uint64_t>(value)) std::this_thread::yield();
    for (int look = 0; look < 3; ++look)
      for (const float* const parameters : before)
        ASSERT_EQ(std::count(parameters, parameters + kElements, applied), ssize_t{kElements});
    state = client.finish();
    applied += value;
    EXPECT_EQ(state.loss, value);
    EXPECT_EQ(state.staleness, 0u);
    expectAll(client, applied);
  }
  EXPECT_EQ(state.global_step, 20u);
  client.pull();
  expectAll(client, applied);
}

// The gradient goes to one ps as it is written, to the other whole, in one small message.
TEST_P(StreamSuite, ASmallGradientFollowsALargeOneOnceItIsWritten) {
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout(
      {{"large", Shape{kElements}, {{0, 0, kElements}}}, {"small", Shape{32}, {{1, 0, 32}}}}, kPs);
  model.optimizer.learning_rate = 1;
  model.steps = 20;
  Clients clients = start(kPs, 1, model, zeros(model));
  replication::StepState state = clients[0]->pull();
  for (float value = 1; !state.done; ++value) {
    clients[0]->begin(state.next_step, state.next_batch, 0, Gradient::kGrowing);
    std::fill_n(clients[0]->gradients(0), kElements / 2, -1.0F);
    clients[0]->written(std::vector<uint64_t>{kElements / 2, 0});
    std::fill_n(clients[0]->gradients(0) + kElements / 2, kElements / 2, -1.0F);
    std::fill_n(clients[0]->gradients(1), 16, -2.0F);
    clients[0]->written(std::vector<uint64_t>{kElements, 16});
    std::fill_n(clients[0]->gradients(1) + 16, 16, -2.0F);
    clients[0]->written(std::vector<uint64_t>{kElements, 32});
    state = clients[0]->finish();
    EXPECT_EQ(std::count(clients[0]->view(Values::kParameters, 0),
                         clients[0]->view(Values::kParameters, 0) + kElements, value),
              ssize_t{kElements});
    EXPECT_EQ(std::count(clients[0]->view(Values::kParameters, 1),
                         clients[0]->view(Values::kParameters, 1) + 32, 2 * value),
              32);
  }
}

// One worker streams its gradient, another pushes it whole: the ps can't tell them apart.
TEST_P(StreamSuite, SyncWorkersThatStreamAndOthersMakeTheSameSteps) {
  const arena::ModelDeclaration model =
      streamedModel(12, {cluster::ReplicationSpec::Mode::kSync, 2, 2});
  Clients clients = start(kPs, 2, model, zeros(model));
  inThreads(clients, [](ExchangeClient& client, uint32_t rank) {
    replication::StepState state = client.pull();
    for (int batch = 0; !state.done; ++batch) {
      poison(client);
      if ((batch / 2 + static_cast<int>(rank)) % 2 == 0) {
        state = pushStreamed(client, state, -2);
      } else {
        for (uint32_t ps = 0; ps < kPs; ++ps) std::fill_n(client.gradients(ps), kElements, -4.0F);
        state = pushPull(client, state.next_step, state.next_batch, 0);
      }
      expectAll(client, static_cast<float>(3 * (batch + 1)));
    }
    client.job().leave();
  });
}

// For example because the worker's computation fails: its gradient doesn't count, and others go on.
TEST_P(StreamSuite, APushThatIsAbandonedHasNoEffect) {
  const arena::ModelDeclaration model = streamedModel(3);
  Clients clients = start(kPs, 2, model, zeros(model));
  const replication::StepState state = clients[0]->pull();
  clients[0]->begin(state.next_step, state.next_batch, 1, Gradient::kGrowing);
  write(*clients[0], std::nanf(""), 0, kElements - 16);
  const Error failure(ErrorCode::kTrainingFailed, "the norm is nan");
  clients[0]->finish(&failure);
  clients[0] = nullptr;
  replication::StepState other = clients[1]->pull();
  while (!other.done) other = pushStreamed(*clients[1], other, -1);
  EXPECT_EQ(other.global_step, 3u);
  expectAll(*clients[1], 3);
}

TEST_P(StreamSuite, WhyAPushFailedIsSaidWhenItIsFinished) {
  const arena::ModelDeclaration model = streamedModel(10);
  Clients clients = start(kPs, 1, model, zeros(model));
  const replication::StepState state = clients[0]->pull();
  clients[0]->begin(state.next_step, state.next_batch, 0, Gradient::kGrowing);
  write(*clients[0], 1, 0, kElements / 2);
  const std::unique_ptr<ExchangeClient> newer = connect(0);
  write(*clients[0], 1, kElements / 2, kElements);
  const std::string message = errorOf([&] { clients[0]->finish(); }, ErrorCode::kUnavailable);
  EXPECT_NE(message.find("fenced: worker/0 was replaced"), std::string::npos) << message;
}

}  // namespace dtf::exchange
